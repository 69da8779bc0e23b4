#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/checkpoint/internal/checksum.hpp"
#include "actors/checkpoint/safetensors.hpp"

namespace troupe::train {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLengthBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // as the format says
constexpr std::size_t kMaxDimensions = 32;
constexpr std::size_t kMostShown = 80;  // of a text from the file

/// Takes one file apart. What it finds is only handed out when everything has been checked.
class Decoder {
public:
  Decoder(Buffer file, std::string_view name) : file_(std::move(file)), name_(name) {}

  Result<TensorFile> decode(Checksum checksum) {
    TROUPE_TRY(read_header());
    TROUPE_TRY(read_metadata());
    TROUPE_TRY(check_checksum(checksum));
    for (const auto& [name, entry] : header_.items())
      if (name != "__metadata__") TROUPE_TRY(read_tensor(name, entry));
    TROUPE_TRY(check_coverage());
    result_.metadata.erase(std::string(kChecksumKey));
    result_.storage = std::move(file_);
    return std::move(result_);
  }

private:
  template <class... Args>
  Status damaged(fmt::format_string<Args...> format, Args&&... args) const {
    return {Code::corrupt_data, fmt::format("{} is damaged: {}", name_,
                                            fmt::format(format, std::forward<Args>(args)...))};
  }

  /// The length, which decides how much is taken for JSON, then the JSON.
  Status read_header() {
    if (file_.size() < kLengthBytes)
      return damaged("it has {} bytes, too few for a header", file_.size());
    std::uint64_t length = 0;
    std::memcpy(&length, file_.data(), sizeof(length));
    const std::uint64_t most = std::min(kMaxHeaderBytes, file_.size() - kLengthBytes);
    if (length < 2 || length > most)
      return damaged("it says that its header has {} bytes, but 2 to {} are possible", length,
                     most);
    json_ = {reinterpret_cast<const char*>(file_.data()) + kLengthBytes,
             static_cast<std::size_t>(length)};
    data_ = std::as_const(file_).bytes().subspan(kLengthBytes + json_.size());
    header_ = json::parse(json_.begin(), json_.end(), nullptr, /*allow_exceptions=*/false);
    if (!header_.is_object()) return damaged("its header is not a JSON object");
    return {};
  }

  Status read_metadata() {
    const auto found = header_.find("__metadata__");
    if (found == header_.end()) return {};
    if (!found->is_object()) return damaged("its metadata is not a JSON object");
    for (const auto& [key, value] : found->items()) {
      if (!value.is_string()) return damaged("its metadata '{}' is not a string", key);
      result_.metadata[key] = value.get<std::string>();
    }
    return {};
  }

  /// Over the whole file as it is, only with the checksum's own digits blank.
  Status check_checksum(Checksum checksum) {
    const auto found = result_.metadata.find(std::string(kChecksumKey));
    if (found == result_.metadata.end()) {
      if (checksum == Checksum::if_present) return {};
      return damaged("it has no checksum");
    }
    const std::string blank = internal::blank_checksum();
    const auto at = internal::find_checksum(json_, found->second);
    if (found->second.size() != blank.size() || at == std::string_view::npos)
      return damaged("its checksum is '{}', but must be 'xxh3-128:' and 32 hex digits",
                     found->second.substr(0, kMostShown));
    const auto all = std::as_const(file_).bytes();
    const std::size_t begin = kLengthBytes + at;
    const std::span<const std::byte> parts[] = {all.first(begin), std::as_bytes(std::span(blank)),
                                                all.subspan(begin + blank.size())};
    const std::string actual = internal::checksum_of(parts);
    if (actual == found->second) return {};
    return damaged("its checksum is {}, but its content has {}", found->second, actual);
  }

  Status read_tensor(const std::string& name, const json& entry) {
    const auto field = [&entry](const char* key) -> const json* {
      if (!entry.is_object()) return nullptr;
      const auto it = entry.find(key);
      return it == entry.end() ? nullptr : &*it;
    };
    const json* dtype = field("dtype");
    const json* shape = field("shape");
    const json* offsets = field("data_offsets");
    if (dtype == nullptr || !dtype->is_string() || shape == nullptr || !shape->is_array() ||
        offsets == nullptr || !offsets->is_array() || offsets->size() != 2)
      return damaged("tensor '{}' lacks a dtype, shape or data_offsets", name);

    TensorView tensor{.name = name, .dtype = dtype->get<std::string>(), .shape = {}, .bytes = {}};
    std::uint64_t bytes = dtype_size(tensor.dtype);
    if (bytes == 0) return damaged("tensor '{}' has the unknown type '{}'", name, tensor.dtype);
    if (shape->size() > kMaxDimensions)
      return damaged("tensor '{}' has {} dimensions", name, shape->size());
    for (const json& extent : *shape) {
      if (!extent.is_number_unsigned())
        return damaged("tensor '{}' has a shape of no integers", name);
      tensor.shape.push_back(extent.get<std::uint64_t>());
      if (__builtin_mul_overflow(bytes, tensor.shape.back(), &bytes))
        return damaged("tensor '{}' has a shape that no memory holds", name);
    }
    if (!(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned())
      return damaged("tensor '{}' has offsets that are no integers", name);
    const auto begin = (*offsets)[0].get<std::uint64_t>();
    const auto end = (*offsets)[1].get<std::uint64_t>();
    if (begin > end || end > data_.size())
      return damaged("tensor '{}' lies at {} to {} of {} bytes of data", name, begin, end,
                     data_.size());
    if (end - begin != bytes)
      return damaged("tensor '{}' has {} bytes, but its type and shape need {}", name, end - begin,
                     bytes);
    tensor.bytes = data_.subspan(begin, bytes);
    result_.tensors.push_back(std::move(tensor));
    return {};
  }

  /// Every byte of the data belongs to one tensor.
  Status check_coverage() const {
    std::vector<const TensorView*> by_place;
    for (const TensorView& tensor : result_.tensors) by_place.push_back(&tensor);
    std::sort(by_place.begin(), by_place.end(), [](const TensorView* a, const TensorView* b) {
      return std::pair(a->bytes.data(), a->bytes.size()) <
             std::pair(b->bytes.data(), b->bytes.size());
    });
    const std::byte* at = data_.data();
    for (const TensorView* tensor : by_place) {
      if (tensor->bytes.data() != at)
        return damaged("there is a gap or an overlap before tensor '{}'", tensor->name);
      at += tensor->bytes.size();
    }
    if (at != data_.data() + data_.size())
      return damaged("{} bytes at its end belong to no tensor", data_.data() + data_.size() - at);
    return {};
  }

  Buffer file_;
  std::string_view name_;
  std::string_view json_;
  std::span<const std::byte> data_;
  json header_;
  TensorFile result_;
};

}  // namespace

const TensorView* TensorFile::find(std::string_view name) const {
  for (const TensorView& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

Result<TensorFile> decode_safetensors(Buffer file, std::string_view name, Checksum checksum) {
  return Decoder(std::move(file), name).decode(checksum);
}

Result<TensorFile> read_safetensors(FileSystem& files, const std::filesystem::path& file,
                                    Checksum checksum) {
  TROUPE_ASSIGN(Buffer content, files.read(file));
  return decode_safetensors(std::move(content), file.native(), checksum);
}

}  // namespace troupe::train
