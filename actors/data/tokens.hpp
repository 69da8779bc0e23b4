#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "actors/data/dataset.hpp"
#include "runtime/base/status.hpp"

namespace troupe::train {

/// How a token stands in the file.
enum class TokenType : std::uint8_t {
  byte,  ///< text: the bytes are the tokens
  u16,   ///< two bytes, little-endian
  i32,   ///< four bytes, little-endian
};

struct TokenOptions {
  TokenType type = TokenType::u16;
  std::uint32_t tokens = 0;      ///< of a sample; at least 1
  std::uint32_t vocabulary = 0;  ///< tokens are 0 .. vocabulary-1
};

/// A file of nothing but tokens: i32 [tokens] with labels [tokens], which are the tokens that come
/// next. Sample i is the tokens from i * tokens on; what is left at the end is not used.
///
/// The file is read where a sample is, and tokens are checked then.
class TokenDataset final : public Dataset {
public:
  /// Errors: those of the file; `corrupt_data` naming it if its size is no whole number of tokens
  /// or less than one sample.
  static Result<std::unique_ptr<TokenDataset>> open(const std::filesystem::path& file,
                                                    const TokenOptions& options);
  ~TokenDataset() override;

  std::uint64_t count() const override { return count_; }
  const SampleLayout& layout() const override { return layout_; }
  /// Over the size and the content; of a file above 64 MiB over so much of it.
  const std::string& content_hash() const override { return content_hash_; }
  /// Errors: also `corrupt_data` naming file and byte for a token outside the vocabulary.
  Status read(std::uint64_t index, Use use, std::span<std::byte> input,
              std::span<std::byte> labels) const override;

private:
  struct Source;
  TokenDataset(std::unique_ptr<Source> source, const TokenOptions& options);

  const std::unique_ptr<Source> source_;
  const TokenOptions options_;
  const SampleLayout layout_;
  std::uint64_t count_ = 0;
  std::string content_hash_;
};

}  // namespace troupe::train
