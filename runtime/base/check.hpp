#pragma once

#include <string_view>

namespace troupe {

/// Prints where, what and the message to stderr, then aborts. For broken invariants only: what can
/// go wrong at run time is a Status.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message) noexcept;

}  // namespace troupe

/// Aborts with `message` (anything that converts to std::string_view; made only on failure) unless
/// `condition` holds. On in every build.
#define TROUPE_CHECK(condition, message)                                 \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::troupe::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
