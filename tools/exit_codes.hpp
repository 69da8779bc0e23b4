#pragma once

#include "runtime/base/status.hpp"

namespace troupe::tool {

// What the process's exit code tells. docs/errors.md lists them.
inline constexpr int kSuccess = 0;
inline constexpr int kFailed = 1;       ///< the job or the command failed while it ran
inline constexpr int kBadInput = 2;     ///< wrong arguments, job file or data; nothing was started
inline constexpr int kUnavailable = 3;  ///< no cluster: head unreachable, refused, or node fenced
inline constexpr int kInterrupted = 130;  ///< stopped by SIGINT or SIGTERM, in order

/// The exit code for an error.
int exit_code(const Error& error);

/// Prints "troupe: <sentence>" to stderr; returns exit_code(error).
int fail(const Error& error);

}  // namespace troupe::tool
