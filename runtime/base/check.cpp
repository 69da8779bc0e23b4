#include "runtime/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace troupe {

void check_failed(const char* file, int line, const char* condition,
                  std::string_view message) noexcept {
  std::fprintf(stderr, "troupe: %s:%d: broken invariant: %s: %.*s\n", file, line, condition,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace troupe
