#include "actors/checkpoint/file_system.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "actors/checkpoint/atomic_file.hpp"

namespace troupe::train {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

class PosixFiles : public testing::Test {
protected:
  PosixFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-files-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~PosixFiles() override { std::filesystem::remove_all(folder_); }

  static std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
  }
  static std::string text(const Buffer& buffer) {
    return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
  }

  std::filesystem::path folder_;
  PosixFileSystem files_;
};

TEST_F(PosixFiles, what_was_written_is_read) {
  const std::span<const std::byte> parts[] = {bytes("one "), bytes(""), bytes("two")};
  ASSERT_TRUE(write_atomically(files_, folder_ / "file", parts).ok());
  EXPECT_EQ(text(*files_.read(folder_ / "file")), "one two");
  EXPECT_THAT(*files_.list(folder_), UnorderedElementsAre("file"));
}

TEST_F(PosixFiles, folders_are_made_as_deep_as_they_are_named) {
  ASSERT_TRUE(files_.create_directory(folder_ / "a" / "b" / "c").ok());
  ASSERT_TRUE(files_.create_directory(folder_ / "a" / "b" / "c").ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "a" / "b" / "c"));
}

TEST_F(PosixFiles, what_is_not_there_is_not_found_and_named) {
  EXPECT_EQ(files_.read(folder_ / "x").code(), Code::not_found);
  EXPECT_EQ(files_.list(folder_ / "x").code(), Code::not_found);
  EXPECT_EQ(files_.remove(folder_ / "x").code(), Code::not_found);
  EXPECT_EQ(files_.rename(folder_ / "x", folder_ / "y").code(), Code::not_found);
  EXPECT_EQ(files_.create(folder_ / "no" / "x").code(), Code::not_found);
  EXPECT_THAT(files_.read(folder_ / "x").error().message, HasSubstr((folder_ / "x").native()));
}

TEST_F(PosixFiles, a_file_in_the_way_is_named) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_EQ(files_.create(folder_ / "file").code(), Code::already_exists);
  const Status status = files_.create_directory(folder_ / "file");
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.error().message, HasSubstr((folder_ / "file").native()));
  const auto listed = files_.list(folder_ / "file");
  EXPECT_EQ(listed.code(), Code::invalid_argument);
  EXPECT_THAT(listed.error().message, HasSubstr("give the name of a folder"));
}

TEST_F(PosixFiles, only_regular_files_are_read) {
  EXPECT_EQ(files_.read(folder_).code(), Code::invalid_argument);
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(files_.read(folder_ / "pipe").code(), Code::invalid_argument);
}

TEST_F(PosixFiles, a_write_that_the_system_refuses_is_told_with_file_and_reason) {
  // A limit on file sizes makes write() fail as a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string content(10000, 'x');
  const std::span<const std::byte> parts[] = {bytes(content)};
  const Status status = write_atomically(files_, folder_ / "file", parts);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), Code::io_error);
  EXPECT_THAT(status.error().message, HasSubstr("File too large"));
  EXPECT_THAT(*files_.list(folder_), testing::IsEmpty());
}

}  // namespace
}  // namespace troupe::train
