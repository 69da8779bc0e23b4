#include "actors/checkpoint/atomic_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/checkpoint/fake_file_system.hpp"

namespace troupe::train {
namespace {

using testing::ElementsAre;
using testing::Pair;

Status write(FileSystem& files, std::string_view first, std::string_view second) {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(first)),
                                              std::as_bytes(std::span(second))};
  return write_atomically(files, "/d/file", parts);
}

/// How many calls a write takes when nothing fails.
std::uint64_t calls_of_a_write() {
  FakeFileSystem files;
  EXPECT_TRUE(write(files, "new ", "content").ok());
  return files.calls();
}

TEST(WriteAtomically, leaves_the_file_and_nothing_else) {
  FakeFileSystem files;
  files.put("/d/file", "old content");
  ASSERT_TRUE(write(files, "new ", "content").ok());
  files.lose_power();
  EXPECT_THAT(files.contents(), ElementsAre(Pair("/d/file", "new content")));
}

TEST(WriteAtomically, a_call_that_fails_is_told_and_the_old_file_stays) {
  const std::uint64_t calls = calls_of_a_write();
  ASSERT_EQ(calls, 7u);  // create, write twice, sync, close, rename, sync the folder
  for (std::uint64_t n = 0; n < calls; ++n) {
    FakeFileSystem files;
    files.put("/d/file", "old content");
    files.fail_at(n);
    const Status status = write(files, "new ", "content");
    EXPECT_EQ(status.code(), Code::io_error) << n;
    const bool renamed = n == calls - 1;
    EXPECT_THAT(files.contents(),
                ElementsAre(Pair("/d/file", renamed ? "new content" : "old content")))
        << n;
  }
}

TEST(WriteAtomically, whenever_the_process_dies_or_power_is_lost_the_file_is_old_or_new) {
  const std::uint64_t calls = calls_of_a_write();
  for (std::uint64_t n = 0; n <= calls; ++n)
    for (const bool lucky : {false, true}) {
      FakeFileSystem files;
      files.put("/d/file", "old content");
      files.die_at(n);
      (void)write(files, "new ", "content");
      files.lose_power(lucky);
      const std::string content = files.contents()["/d/file"];
      EXPECT_TRUE(content == "old content" || content == "new content") << n << content;
      if (n == calls) {
        EXPECT_EQ(content, "new content");
      }
    }
}

TEST(WriteAtomically, writes_beside_what_a_dead_writer_left) {
  FakeFileSystem files;
  ASSERT_TRUE(files.create_directory("/d").ok());
  files.die_at(4);
  (void)write(files, "half ", "of it");
  files.lose_power(true);
  ASSERT_EQ(files.contents().size(), 1u);
  ASSERT_TRUE(write(files, "new ", "content").ok());
  EXPECT_EQ(files.contents()["/d/file"], "new content");
  files.put("/d/.other-hidden", "stays");
  ASSERT_TRUE(remove_temporaries(files, "/d").ok());
  EXPECT_THAT(files.contents(),
              ElementsAre(Pair("/d/.other-hidden", "stays"), Pair("/d/file", "new content")));
}

}  // namespace
}  // namespace troupe::train
