// Prints what digest_of_training gives, for tests that compare processes.
#include <cstdio>
#include <cstring>

#include "tests/kernels/digest.hpp"

int main(int argc, char** argv) {
  using troupe::kernels::KernelChoice;
  const bool library = argc > 1 && std::strcmp(argv[1], "library") == 0;
  const auto digest = troupe::kernels::digest_of_training(library ? KernelChoice::library
                                                                  : KernelChoice::automatic);
  std::printf("%016llx\n", static_cast<unsigned long long>(digest));
}
