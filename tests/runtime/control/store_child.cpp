#include <cstdio>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/runtime/control/store_fixture.hpp"

namespace troupe::control {
namespace {

/// Leads, writes a value, says its term, and goes on leading until it is killed. Says if it is
/// lost.
int lead_until_killed(const char* address) {
  const auto store = open(address, "child");
  const auto term = store->lead(seconds(20), [&store](const Error&) {
    store->put("from", "a child that was lost");
    std::puts("lost");
    std::fflush(stdout);
  });
  store->put("from", "child");
  const Status written = term.ok() ? store->flush(seconds(20)) : term.status();
  std::printf("%s\n",
              written.ok() ? std::to_string(*term).c_str() : to_string(written.error()).c_str());
  std::fflush(stdout);
  if (!written.ok()) return 1;
  for (;;) ::pause();
}

}  // namespace
}  // namespace troupe::control

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--child")
    return troupe::control::lead_until_killed(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
