#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "actors/data/dataset.hpp"
#include "runtime/base/check.hpp"

namespace troupe::train {

/// Tests that write files: a folder that is removed in the end.
class DataFiles : public testing::Test {
protected:
  DataFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-data-XXXXXX").string();
    TROUPE_CHECK(mkdtemp(name.data()) != nullptr, "mkdtemp");
    folder_ = name;
  }
  ~DataFiles() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  std::filesystem::path folder_;
};

/// A sample as it was read.
struct Sample {
  std::string input;
  std::vector<std::int32_t> labels;
  bool operator==(const Sample&) const = default;
};

inline Result<Sample> read_sample(const Dataset& data, std::uint64_t index, Use use = kForTest) {
  Sample sample{std::string(data.layout().input_bytes(), '\0'),
                std::vector<std::int32_t>(data.layout().label_bytes() / 4)};
  TROUPE_TRY(data.read(index, use, std::as_writable_bytes(std::span(sample.input)),
                       std::as_writable_bytes(std::span(sample.labels))));
  return sample;
}

/// The sentence of an error, or "none".
template <class T>
std::string error_of(const T& result) {
  return result.ok() ? "none" : result.error().message;
}

}  // namespace troupe::train
