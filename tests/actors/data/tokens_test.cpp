#include "actors/data/tokens.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/data/data_files.hpp"

namespace troupe::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Tokens : public DataFiles {
protected:
  Result<std::unique_ptr<TokenDataset>> open(const std::string& content, TokenType type,
                                             std::uint32_t tokens = 3,
                                             std::uint32_t vocabulary = 300) const {
    return TokenDataset::open(write("tokens", content),
                              {.type = type, .tokens = tokens, .vocabulary = vocabulary});
  }
  static std::vector<std::int32_t> input_of(const Dataset& data, std::uint64_t index) {
    const auto sample = read_sample(data, index).value();
    std::vector<std::int32_t> tokens(sample.input.size() / 4);
    std::memcpy(tokens.data(), sample.input.data(), sample.input.size());
    return tokens;
  }
};

TEST_F(Tokens, labels_are_the_tokens_that_come_next) {
  const auto set = open("abcdefgh", TokenType::byte);  // the eighth is the last label
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ((*set)->count(), 2u);
  EXPECT_EQ((*set)->layout(), (SampleLayout{kernels::DType::i32, {3}, {3}}));
  EXPECT_THAT(input_of(**set, 1), ElementsAre('d', 'e', 'f'));
  EXPECT_THAT(read_sample(**set, 1)->labels, ElementsAre('e', 'f', 'g'));
}

TEST_F(Tokens, are_two_or_four_bytes_little_endian) {
  const std::string two("\1\0\2\1\3\0\4\0", 8), four("\1\0\0\0\2\1\0\0\3\0\0\0\4\0\0\0", 16);
  for (const auto& [content, type] : {std::pair{two, TokenType::u16}, {four, TokenType::i32}}) {
    const auto set = open(content, type);
    ASSERT_TRUE(set.ok()) << set.error().message;
    EXPECT_EQ((*set)->count(), 1u);
    EXPECT_THAT(input_of(**set, 0), ElementsAre(1, 258, 3));
    EXPECT_THAT(read_sample(**set, 0)->labels, ElementsAre(258, 3, 4));
  }
}

TEST_F(Tokens, a_token_outside_the_vocabulary_is_named_with_file_and_byte) {
  const auto set = open(std::string("\1\0\2\0\3\0\0\2", 8), TokenType::u16).value();
  EXPECT_EQ(read_sample(*set, 0).code(), Code::corrupt_data);
  EXPECT_THAT(read_sample(*set, 0).error().message,
              HasSubstr("tokens at byte 6: the token is 512, but tokens are 0 to 299"));
  const auto negative = open(std::string(16, '\xff'), TokenType::i32).value();
  EXPECT_EQ(read_sample(*negative, 0).code(), Code::corrupt_data);
  EXPECT_THAT(read_sample(*negative, 0).error().message, HasSubstr("the token is -1, but"));
}

TEST_F(Tokens, a_file_of_the_wrong_size_is_refused) {
  EXPECT_THAT(error_of(open("abcde", TokenType::u16)), HasSubstr("no whole number of tokens"));
  EXPECT_THAT(error_of(open("abc", TokenType::byte)), HasSubstr("has 3 tokens, but a sample and "
                                                                "the token after it are 4"));
  EXPECT_THAT(error_of(open("", TokenType::byte)), HasSubstr("is empty"));
  EXPECT_EQ(open("abcd", TokenType::byte, UINT32_MAX).code(), Code::corrupt_data);
  EXPECT_EQ(TokenDataset::open(folder_ / "none", {.tokens = 1}).code(), Code::not_found);
}

TEST_F(Tokens, a_file_that_became_shorter_is_an_error_and_not_the_end_of_the_process) {
  const auto set = open("abcdefgh", TokenType::byte).value();
  std::filesystem::resize_file(folder_ / "tokens", 5);
  EXPECT_TRUE(read_sample(*set, 0).ok());
  EXPECT_EQ(read_sample(*set, 1).code(), Code::corrupt_data);
  EXPECT_THAT(read_sample(*set, 1).error().message, HasSubstr("tokens at byte 3"));
}

TEST_F(Tokens, the_hash_of_a_large_file_sees_its_ends_and_its_size) {
  const auto file = write("tokens", "x");
  const auto hash = [&] {
    return TokenDataset::open(file, {TokenType::byte, 3, 300}).value()->content_hash();
  };
  const auto put = [&](std::uintmax_t at, char value) {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(static_cast<std::streamoff>(at)).put(value);
  };
  constexpr std::uintmax_t kSize = std::uintmax_t{80} << 20;  // a hole, mostly
  std::filesystem::resize_file(file, kSize);
  const auto before = hash();
  EXPECT_EQ(hash(), before);
  put(kSize - 1, 'y');
  EXPECT_NE(hash(), before);
  put(kSize - 1, '\0');
  EXPECT_EQ(hash(), before);
  put(0, 'y');
  EXPECT_NE(hash(), before);
  put(0, 'x');
  std::filesystem::resize_file(file, kSize + 1);
  EXPECT_NE(hash(), before);
}

}  // namespace
}  // namespace troupe::train
