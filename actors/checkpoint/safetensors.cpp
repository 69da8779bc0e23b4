#include "actors/checkpoint/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include "actors/checkpoint/atomic_file.hpp"
#include "actors/checkpoint/internal/checksum.hpp"

namespace troupe::train {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's data is little-endian");

/// Data starts at a multiple of this, so that a mapped or read file can be used in place.
constexpr std::size_t kDataAlignment = 64;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Status check_tensor(const TensorView& tensor) {
  const auto wrong = [&tensor](const std::string& what) {
    return Status{Code::invalid_argument, fmt::format("tensor '{}' {}", tensor.name, what)};
  };
  if (tensor.name.empty() || tensor.name == "__metadata__")
    return wrong("cannot have this name; choose another");
  std::uint64_t bytes = dtype_size(tensor.dtype);
  if (bytes == 0) return wrong(fmt::format("has the unknown type '{}'", tensor.dtype));
  for (const std::uint64_t extent : tensor.shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return wrong("is too large");
  if (bytes != tensor.bytes.size())
    return wrong(fmt::format("of type {} and shape [{}] has {} bytes, not {}", tensor.dtype,
                             fmt::join(tensor.shape, ", "), bytes, tensor.bytes.size()));
  return {};
}

/// The header's JSON with a blank checksum, without padding.
Result<std::string> make_json(const std::vector<TensorView>& tensors, const Metadata& metadata) {
  if (metadata.contains(std::string(kChecksumKey)))
    return Error{
        Code::invalid_argument,
        fmt::format("the metadata key '{}' is set by the writer; remove it", kChecksumKey)};
  nlohmann::json json = nlohmann::json::object();
  json["__metadata__"] = metadata;
  json["__metadata__"][std::string(kChecksumKey)] = internal::blank_checksum();
  std::uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    const std::uint64_t end = offset + tensor.bytes.size();
    auto& entry = json[tensor.name];
    if (!entry.is_null())
      return Error{Code::invalid_argument,
                   fmt::format("two tensors are called '{}'; rename one", tensor.name)};
    entry = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  try {
    return json.dump();
  } catch (const nlohmann::json::exception& error) {
    return Error{Code::invalid_argument,
                 fmt::format("a name or a metadata value is not UTF-8 ({})", error.what())};
  }
}

/// The lower-case hex digits of SHA-256 over `parts`.
Result<std::string> sha256(std::span<const std::span<const std::byte>> parts) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  bool done = context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (const auto& part : parts)
    done = done && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
  std::array<unsigned char, 32> digest{};
  done = done && EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1;
  if (!done) return Error{Code::internal, "OpenSSL has no SHA-256; check its configuration"};
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::vector<std::span<const std::byte>> parts_of(std::string_view header,
                                                 const std::vector<TensorView>& tensors) {
  std::vector<std::span<const std::byte>> parts{bytes_of(header)};
  for (const TensorView& tensor : tensors) parts.push_back(tensor.bytes);
  return parts;
}

}  // namespace

std::size_t dtype_size(std::string_view dtype) noexcept {
  struct Type {
    std::string_view name;
    std::size_t size;
  };
  static constexpr Type kTypes[] = {
      {"F64", 8},     {"I64", 8},     {"U64", 8},  {"C64", 8}, {"F32", 4}, {"I32", 4},
      {"U32", 4},     {"F16", 2},     {"BF16", 2}, {"I16", 2}, {"U16", 2}, {"F8_E4M3", 1},
      {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"I8", 1},   {"U8", 1},  {"BOOL", 1}};
  for (const Type& type : kTypes)
    if (type.name == dtype) return type.size;
  return 0;
}

Result<std::string> encode_header(std::vector<TensorView>& tensors, const Metadata& metadata) {
  for (const TensorView& tensor : tensors) TROUPE_TRY(check_tensor(tensor));
  std::sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    const std::size_t size_a = dtype_size(a.dtype), size_b = dtype_size(b.dtype);
    return size_a != size_b ? size_a > size_b : a.name < b.name;
  });
  TROUPE_ASSIGN(const std::string json, make_json(tensors, metadata));

  std::string header(sizeof(std::uint64_t), '\0');
  header += json;
  header.resize((header.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment, ' ');
  const std::uint64_t length = header.size() - sizeof(std::uint64_t);
  std::memcpy(header.data(), &length, sizeof(length));

  const std::string checksum = internal::checksum_of(parts_of(header, tensors));
  const auto at = internal::find_checksum(header, internal::blank_checksum());
  TROUPE_CHECK(at != std::string::npos, "a header without its checksum");
  header.replace(at, checksum.size(), checksum);
  return header;
}

Result<WrittenFile> write_safetensors(FileSystem& files, const std::filesystem::path& file,
                                      std::vector<TensorView> tensors, const Metadata& metadata) {
  TROUPE_ASSIGN(const std::string header, encode_header(tensors, metadata));
  const auto parts = parts_of(header, tensors);
  WrittenFile written{.path = file, .bytes = 0, .sha256 = {}};
  for (const auto& part : parts) written.bytes += part.size();
  TROUPE_ASSIGN(written.sha256, sha256(parts));
  TROUPE_TRY(write_atomically(files, file, parts));
  return written;
}

}  // namespace troupe::train
