// The main() of tests that need a device: without it they are skipped, and say why (77, which ctest
// is told to show as skipped).
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/kernels/device_network.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("TROUPE_TEST_DEVICE", "cuda", /*overwrite=*/0);
  const auto device = troupe::kernels::test_device();
  if (!device.ok()) {
    std::printf("SKIPPED: no device to run on: %s\n", troupe::to_string(device.error()).c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
