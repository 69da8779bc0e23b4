#include "actors/checkpoint/safetensors.hpp"

#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/checkpoint/fake_file_system.hpp"

namespace troupe::train {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const float kWeights[] = {1.0f, -2.5f, 3.25f, 0.0f, 5.0f, 6.0f};
const std::uint8_t kFlags[] = {1, 2, 3};
const double kLoss[] = {0.5};

std::vector<TensorView> some_tensors() {
  return {{"flags", "U8", {3}, std::as_bytes(std::span(kFlags))},
          {"conv1.weight", "F32", {2, 3}, std::as_bytes(std::span(kWeights))},
          {"loss", "F64", {}, std::as_bytes(std::span(kLoss))},
          {"empty", "F32", {0, 4}, {}}};
}
const Metadata kMetadata = {{"troupe.step", "7"}, {"note", "a \"quoted\" \\ text"}};

std::string encode(std::vector<TensorView> tensors, const Metadata& metadata = kMetadata) {
  std::string file = encode_header(tensors, metadata).value();
  for (const auto& tensor : tensors)
    file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return file;
}

Result<TensorFile> decode(const std::string& file, Checksum checksum = Checksum::required) {
  return decode_safetensors(Buffer::copy_of(std::as_bytes(std::span(file))).value(),
                            "w.safetensors", checksum);
}

/// A file without checksum, as others write them.
std::string foreign(const std::string& json, std::size_t data_bytes) {
  const std::uint64_t length = json.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + json + std::string(data_bytes, 'x');
}

TEST(Safetensors, what_was_encoded_is_decoded) {
  const auto file = decode(encode(some_tensors()));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->metadata, kMetadata);
  ASSERT_EQ(file->tensors.size(), 4u);
  for (const TensorView& tensor : some_tensors()) {
    const TensorView* found = file->find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    ASSERT_EQ(found->bytes.size(), tensor.bytes.size());
    EXPECT_TRUE(std::equal(found->bytes.begin(), found->bytes.end(), tensor.bytes.begin()));
  }
  EXPECT_EQ(file->find("other"), nullptr);
}

TEST(Safetensors, every_tensor_is_aligned_for_its_type) {
  const auto file = decode(encode(some_tensors()));
  for (const TensorView& tensor : file->tensors)
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % dtype_size(tensor.dtype), 0u)
        << tensor.name;
}

TEST(Safetensors, the_order_of_tensors_does_not_change_a_byte) {
  auto tensors = some_tensors();
  std::reverse(tensors.begin(), tensors.end());
  EXPECT_EQ(encode(tensors), encode(some_tensors()));
}

TEST(Safetensors, the_bytes_are_those_of_every_version_before) {
  const float values[] = {1.0f, 2.0f};
  const std::string file =
      encode({{"w", "F32", {2}, std::as_bytes(std::span(values))}}, {{"troupe.step", "3"}});
  const std::string json =
      R"({"__metadata__":{"troupe.checksum":"xxh3-128:724034cad6d17ec76c924db3c0ec6078","troupe.step":"3"},"w":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  const std::uint64_t length = 184;
  std::string expected(8, '\0');
  std::memcpy(expected.data(), &length, 8);
  expected += json;
  expected.resize(8 + length, ' ');
  expected += std::string("\0\0\x80\x3f\0\0\0\x40", 8);
  EXPECT_EQ(file, expected);
}

TEST(Safetensors, a_flipped_bit_is_found_wherever_it_is) {
  const std::string file = encode(some_tensors());
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string altered = file;
    altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << bit % 8));
    const auto decoded = decode(altered);
    ASSERT_EQ(decoded.code(), Code::corrupt_data) << "bit " << bit;
    EXPECT_THAT(decoded.error().message, StartsWith("w.safetensors is damaged: "));
  }
}

TEST(Safetensors, a_file_that_is_cut_off_or_goes_on_is_found_wherever_it_is) {
  const std::string file = encode(some_tensors());
  for (std::size_t size = 0; size < file.size(); ++size)
    ASSERT_EQ(decode(file.substr(0, size)).code(), Code::corrupt_data) << size;
  EXPECT_EQ(decode(file + "x").code(), Code::corrupt_data);
  EXPECT_EQ(decode(file + std::string(1000, '\0')).code(), Code::corrupt_data);
}

TEST(Safetensors, random_bytes_are_refused) {
  std::mt19937 random(7);  // NOLINT: the same bytes each time
  for (int n = 0; n < 2000; ++n) {
    std::string file(random() % 300, '\0');
    for (char& c : file) c = static_cast<char>(random());
    if (file.size() > 8 && n % 2 == 0) {  // a length that fits, so that more than it is looked at
      const std::uint64_t length = random() % (file.size() - 8);
      std::memcpy(file.data(), &length, sizeof(length));
    }
    ASSERT_EQ(decode(file, Checksum::if_present).code(), Code::corrupt_data) << n;
  }
}

TEST(Safetensors, files_of_others_have_no_checksum_and_are_read_if_that_is_allowed) {
  const std::string file = foreign(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                                   R"("b":{"dtype":"BOOL","shape":[1],"data_offsets":[4,5]}}   )",
                                   5);
  const auto decoded = decode(file, Checksum::if_present);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_THAT(decoded->tensors[0].shape, ElementsAre(2));
  EXPECT_THAT(decode(file).error().message, HasSubstr("it has no checksum"));
}

TEST(Safetensors, what_does_not_hold_together_is_named) {
  const auto refused = [](const std::string& json, std::size_t bytes) {
    auto decoded = decode(foreign(json, bytes), Checksum::if_present);
    EXPECT_EQ(decoded.code(), Code::corrupt_data) << json;
    return decoded.ok() ? "" : decoded.error().message;
  };
  const auto tensor = [](const char* dtype, const char* shape, const char* offsets) {
    return fmt::format(R"({{"a":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape,
                       offsets);
  };
  EXPECT_THAT(refused("[1]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(refused("{\"a\":", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(refused(R"({"__metadata__":3})", 0), HasSubstr("metadata"));
  EXPECT_THAT(refused(R"({"__metadata__":{"k":3}})", 0), HasSubstr("'k'"));
  EXPECT_THAT(refused(R"({"a":3})", 0), HasSubstr("tensor 'a' lacks"));
  EXPECT_THAT(refused(tensor("F31", "[1]", "[0,4]"), 4), HasSubstr("'F31'"));
  EXPECT_THAT(refused(tensor("F32", "[-1]", "[0,4]"), 4), HasSubstr("no integers"));
  EXPECT_THAT(refused(tensor("F32", "[1.5]", "[0,4]"), 4), HasSubstr("no integers"));
  EXPECT_THAT(refused(tensor("F32", "[1]", "[0,\"4\"]"), 4), HasSubstr("no integers"));
  EXPECT_THAT(refused(tensor("F32", "[1]", "[4,0]"), 4), HasSubstr("lies at 4 to 0 of 4"));
  EXPECT_THAT(refused(tensor("F32", "[1]", "[0,8]"), 4), HasSubstr("lies at 0 to 8 of 4"));
  EXPECT_THAT(refused(tensor("F32", "[2]", "[0,4]"), 4), HasSubstr("has 4 bytes"));
  EXPECT_THAT(refused(tensor("F32", "[4611686018427387904,4]", "[0,4]"), 4),
              HasSubstr("no memory holds"));
  EXPECT_THAT(refused(tensor("F32", "[1]", "[4,8]"), 8), HasSubstr("gap or an overlap"));
  EXPECT_THAT(refused(tensor("F32", "[1]", "[0,4]"), 9), HasSubstr("5 bytes at its end"));
  EXPECT_THAT(refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                      R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                      6),
              HasSubstr("overlap before tensor 'b'"));
}

TEST(Safetensors, a_header_that_claims_to_be_huge_costs_no_memory) {
  std::string file(16, '\0');
  for (const std::uint64_t length : {std::uint64_t{9}, std::uint64_t{1} << 40, UINT64_MAX}) {
    std::memcpy(file.data(), &length, sizeof(length));
    EXPECT_THAT(decode(file).error().message,
                HasSubstr(fmt::format("has {} bytes, but 2 to 8", length)));
  }
}

TEST(Safetensors, tensors_that_do_not_fit_are_refused_before_anything_is_written) {
  const auto refused = [](std::vector<TensorView> tensors, const Metadata& metadata = {}) {
    auto header = encode_header(tensors, metadata);
    EXPECT_EQ(header.code(), Code::invalid_argument);
    return header.ok() ? "" : header.error().message;
  };
  const auto four = std::as_bytes(std::span(kWeights)).first(4);
  EXPECT_THAT(refused({{"w", "F32", {2}, four}}),
              AllOf(HasSubstr("'w'"), HasSubstr("8 bytes, not 4")));
  EXPECT_THAT(refused({{"w", "F99", {1}, four}}), HasSubstr("'F99'"));
  EXPECT_THAT(refused({{"", "F32", {1}, four}}), HasSubstr("name"));
  EXPECT_THAT(refused({{"__metadata__", "F32", {1}, four}}), HasSubstr("name"));
  EXPECT_THAT(refused({{"w", "F32", {1}, four}, {"w", "F32", {1}, four}}), HasSubstr("called 'w'"));
  EXPECT_THAT(refused({{"w", "F32", {UINT64_MAX, 8}, four}}), HasSubstr("too large"));
  EXPECT_THAT(refused({{"\xff", "F32", {1}, four}}), HasSubstr("UTF-8"));
  EXPECT_THAT(refused({}, {{"troupe.checksum", "x"}}), HasSubstr("set by the writer"));
}

TEST(Safetensors, a_written_file_has_its_size_and_the_hash_that_sha256sum_prints) {
  FakeFileSystem files;
  const auto written = write_safetensors(files, "/d/w.safetensors", some_tensors(), kMetadata);
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(files.contents()["/d/w.safetensors"], encode(some_tensors()));
  EXPECT_EQ(written->bytes, encode(some_tensors()).size());
  EXPECT_EQ(written->sha256.size(), 64u);
  EXPECT_TRUE(read_safetensors(files, "/d/w.safetensors").ok());
  EXPECT_EQ(read_safetensors(files, "/d/none").code(), Code::not_found);
}

}  // namespace
}  // namespace troupe::train
