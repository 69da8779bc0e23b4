#include "actors/data/tokens.hpp"

#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "actors/data/internal/content_hash.hpp"
#include "actors/data/internal/file.hpp"

namespace troupe::train {
namespace {

constexpr std::uint64_t kHashedBytes = std::uint64_t{64} << 20;

std::size_t bytes_of(TokenType type) {
  return type == TokenType::byte ? 1 : type == TokenType::u16 ? 2 : 4;
}

std::uint32_t decode(const std::byte* bytes, std::size_t size) {
  std::uint32_t token = 0;
  for (std::size_t i = 0; i < size; ++i)
    token |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return token;
}

}  // namespace

struct TokenDataset::Source {
  std::unique_ptr<internal::File> file;
};

TokenDataset::TokenDataset(std::unique_ptr<Source> source, const TokenOptions& options)
    : source_(std::move(source)),
      options_(options),
      layout_{kernels::DType::i32, {options.tokens}, {options.tokens}} {}
TokenDataset::~TokenDataset() = default;

Result<std::unique_ptr<TokenDataset>> TokenDataset::open(const std::filesystem::path& name,
                                                         const TokenOptions& options) {
  if (options.tokens == 0)
    return Error{Code::invalid_argument, "a sample has 0 tokens; set data.tokens"};
  TROUPE_ASSIGN(auto file, internal::File::open(name));
  const std::size_t token = bytes_of(options.type);
  if (file->size() % token != 0)
    return Error{Code::corrupt_data,
                 fmt::format("{} has {} bytes, which is no whole number of tokens of {} bytes; "
                             "fetch it again and check data.token_type",
                             name.native(), file->size(), token)};
  const std::uint64_t tokens = file->size() / token;
  if (tokens <= options.tokens)
    return Error{Code::corrupt_data,
                 fmt::format("{} has {} tokens, but a sample and the token after it are {}; lower "
                             "data.tokens or name a larger file",
                             name.native(), tokens, std::uint64_t{options.tokens} + 1)};
  internal::ContentHash hash;
  hash.add(std::uint64_t{token});
  TROUPE_TRY(hash.add_sampled(*file, kHashedBytes));
  std::unique_ptr<TokenDataset> set(
      new TokenDataset(std::make_unique<Source>(Source{std::move(file)}), options));
  set->count_ = (tokens - 1) / options.tokens;
  set->content_hash_ = hash.hex();
  return set;
}

Status TokenDataset::read(std::uint64_t index, Use, std::span<std::byte> input,
                          std::span<std::byte> labels) const {
  TROUPE_CHECK(index < count_, fmt::format("sample {} of {}", index, count_));
  const std::size_t size = bytes_of(options_.type);
  const std::uint64_t offset = index * options_.tokens * size;
  std::vector<std::byte> bytes((std::size_t{options_.tokens} + 1) * size);
  TROUPE_TRY(source_->file->read_exactly(offset, bytes));
  for (std::size_t i = 0; i <= options_.tokens; ++i) {
    const std::uint32_t token = decode(bytes.data() + i * size, size);
    if (token >= options_.vocabulary)
      return {
          Code::corrupt_data,
          fmt::format("{} at byte {}: the token is {}, but tokens are 0 to {}; check "
                      "data.token_type, model.classes and the file",
                      source_->file->path().native(), offset + i * size,
                      size == sizeof(std::int32_t) ? std::int64_t{static_cast<std::int32_t>(token)}
                                                   : std::int64_t{token},
                      options_.vocabulary - 1)};
    const auto value = static_cast<std::int32_t>(token);
    if (i < options_.tokens) std::memcpy(input.data() + i * sizeof(value), &value, sizeof(value));
    if (i > 0) std::memcpy(labels.data() + (i - 1) * sizeof(value), &value, sizeof(value));
  }
  return {};
}

}  // namespace troupe::train
