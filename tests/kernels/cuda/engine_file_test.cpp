#include "kernels/cuda/internal/engine_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/internal/backend.hpp"
#include "kernels/internal/network.hpp"
#include "kernels/models.hpp"
#include "tests/kernels/cuda/stand_in/stand_in.hpp"
#include "tests/kernels/device_network.hpp"

namespace troupe::kernels {
namespace {

using cuda::EngineChoice;
using cuda::EngineFile;
using testing::HasSubstr;

TEST(EngineFileText, is_lines_of_an_operation_a_position_and_an_engine) {
  const auto choices = EngineFile::parse("a b\t3\t62\n\nc, [1, 2]\t0\t0\n");
  EXPECT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices.at("a b"), (EngineChoice{3, 62}));
  EXPECT_EQ(choices.at("c, [1, 2]"), (EngineChoice{0, 0}));
}

TEST(EngineFileText, that_is_damaged_says_nothing) {
  for (const std::string line :
       {"", "\n", "\t\t\n", "a\t1\n", "a\t\t1\n", "a\tone\t1\n", "a\t-1\t1\n", "a\t1\t-1\n",
        "a\t1\t99999999999999999999\n", "a\t1 \t1\n", "a\tb\t1\t1\n", "a\t1\t6", "\t1\t1\n"})
    EXPECT_TRUE(EngineFile::parse(line).empty()) << line;
  EXPECT_EQ(EngineFile::parse("a\t1\tx\nb\t2\t3\na\t1").size(), 1u) << "the others still count";
  EXPECT_EQ(EngineFile::parse("a\t1\t2\na\t3\t4\n").at("a"), (EngineChoice{1, 2})) << "the first";
}

class EnginesOfAFile : public testing::Test {
protected:
  void SetUp() override {
    stand_in::reset();
    // The last one is the fastest of those that are exact.
    stand_in::behaviour().engines = {{}, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, {}, {}};
    stand_in::behaviour().engine_milliseconds = {3.0f, 0.1f, 2.0f, 1.0f};
    std::filesystem::remove(path);
    setenv("TROUPE_CUDA_ENGINES", path.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TROUPE_CUDA_ENGINES");
    unsetenv("TROUPE_CUDA_MEASURE");
    std::filesystem::remove(path);
    stand_in::reset();
  }

  /// The engines that a convolution's three operations are planned with in the end, on a device
  /// that is opened for it.
  std::vector<std::int64_t> taken(bool measure) {
    setenv("TROUPE_CUDA_MEASURE", measure ? "1" : "0", 1);
    const Model model =
        Model::build("m", {2, 8, 7}, {Convolution{.name = "c", .out_channels = 3, .kernel = 3}})
            .value();
    auto network = DeviceNetwork::create_on(ComputeDevice::open({Device::cuda, 0}).value(), model,
                                            1, {.input_gradient = true})
                       .value();
    network.set_input(std::vector<float>(2 * 8 * 7));
    const std::vector<float> parameters(model.flat_size());
    EXPECT_TRUE(network.forward(parameters).ok());
    std::vector<std::int64_t> engines = {stand_in::record().last_engine};
    std::vector<float> gradients(model.flat_size());
    EXPECT_TRUE(network.backward(std::vector<float>(3 * 6 * 5), gradients).ok());
    engines.push_back(stand_in::record().last_engine);
    return engines;
  }
  std::string text() const {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(path) << text; }

  const std::string path = testing::TempDir() + "troupe_engines_test.txt";
};

TEST_F(EnginesOfAFile, are_measured_and_kept_when_that_is_asked_for) {
  EXPECT_EQ(taken(/*measure=*/true), (std::vector<std::int64_t>{3, 3}));
  const std::string kept = text();
  EXPECT_EQ(EngineFile::parse(kept).size(), 3u);
  EXPECT_THAT(kept, HasSubstr("stand-in (9.0), cuDNN"));
  EXPECT_THAT(kept, HasSubstr("convolution forward in f32, x [1, 2, 8, 7], weight [3, 2, 3, 3]"));
  EXPECT_THAT(kept, HasSubstr("\t2\t3\n")) << "the third of those that are exact";
  stand_in::behaviour().engine_milliseconds = {};
  EXPECT_EQ(taken(/*measure=*/false), (std::vector<std::int64_t>{3, 3})) << "without measuring";
  EXPECT_EQ(text(), kept);
}

TEST_F(EnginesOfAFile, that_has_no_line_for_it_are_the_heuristics) {
  EXPECT_EQ(taken(/*measure=*/false), (std::vector<std::int64_t>{0, 0}));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(EnginesOfAFile, that_cudnn_does_not_propose_there_are_the_heuristics) {
  taken(/*measure=*/true);
  const std::string kept = text();
  stand_in::behaviour().first_engine = 40;
  EXPECT_EQ(taken(/*measure=*/false), (std::vector<std::int64_t>{0, 0})) << "other engines";
  stand_in::behaviour().first_engine = 0;
  stand_in::behaviour().unsupported_engines = {3};
  EXPECT_EQ(taken(/*measure=*/false), (std::vector<std::int64_t>{0, 0})) << "without a plan";
  stand_in::behaviour().compute_capability = 8;
  EXPECT_EQ(taken(/*measure=*/false), (std::vector<std::int64_t>{0, 0})) << "another device's";
  EXPECT_EQ(text(), kept);
}

TEST_F(EnginesOfAFile, tell_nodes_with_another_file_apart) {
  const auto variant = [] {
    return ComputeDevice::open({Device::cuda, 0}).value().backend().library_variant();
  };
  unsetenv("TROUPE_CUDA_ENGINES");
  const std::string without = variant();
  setenv("TROUPE_CUDA_ENGINES", path.c_str(), 1);
  write("a\t1\t2\n");
  const std::string first = variant();
  EXPECT_EQ(variant(), first);
  write("a\t1\t3\n");
  EXPECT_NE(variant(), first);
  EXPECT_NE(without, first);
}

TEST_F(EnginesOfAFile, are_an_error_where_the_file_is_too_large_or_not_named) {
  write(std::string(EngineFile::kMostBytes + 1, 'x'));
  auto device = ComputeDevice::open({Device::cuda, 0});
  ASSERT_EQ(device.code(), Code::invalid_argument);
  EXPECT_THAT(device.error().message, HasSubstr(path));
  setenv("TROUPE_CUDA_MEASURE", "yes", 1);
  device = ComputeDevice::open({Device::cuda, 0});
  ASSERT_EQ(device.code(), Code::invalid_argument);
  EXPECT_THAT(device.error().message, HasSubstr("\"yes\""));
  setenv("TROUPE_CUDA_MEASURE", "1", 1);
  unsetenv("TROUPE_CUDA_ENGINES");
  device = ComputeDevice::open({Device::cuda, 0});
  ASSERT_EQ(device.code(), Code::invalid_argument);
  EXPECT_THAT(device.error().message, HasSubstr("TROUPE_CUDA_ENGINES"));
}

}  // namespace
}  // namespace troupe::kernels
