#include "runtime/transport/internal/host_memory.hpp"

#include <cstring>

#include <gtest/gtest.h>
#include <unistd.h>

namespace troupe::transport {
namespace {

TEST(HostMemory, ReadsAProcessByItsNumber) {
  const char from[] = "some bytes";
  char to[sizeof from] = {};
  ASSERT_TRUE(read_process_memory(static_cast<std::uint32_t>(::getpid()),
                                  reinterpret_cast<std::uint64_t>(from),
                                  reinterpret_cast<std::byte*>(to), sizeof from)
                  .ok());
  EXPECT_STREQ(from, to);
}

TEST(HostMemory, AnAddressThatIsNotThereIsAnError) {
  std::byte to[8];
  EXPECT_EQ(read_process_memory(static_cast<std::uint32_t>(::getpid()), 16, to, sizeof to).code(),
            Code::unavailable);
}

TEST(HostMemory, IsReadOnlyIfTheListOfTransportsAllowsIt) {
  for (const char* list : {"", "all", "cma", "tcp,cma", "tcp,sm", "shm", "^tcp", "^posix,sysv"})
    EXPECT_TRUE(tls_allows_memory_reads(list)) << list;
  for (const char* list : {"tcp", "tcp,posix", "^sm", "^tcp,cma", "self"})
    EXPECT_FALSE(tls_allows_memory_reads(list)) << list;
}

TEST(HostMemory, TheHostHasOneName) {
  EXPECT_EQ(host_identity(), host_identity());
  EXPECT_GT(host_identity().size(), 36u);
}

}  // namespace
}  // namespace troupe::transport
