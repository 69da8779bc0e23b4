#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/base/status.hpp"

namespace troupe::tool {

// Child processes that run this same command.

/// A token that only this process and its children know.
std::string fresh_token();

/// Starts this program with other arguments ("troupe" first), in a process group of its own: Ctrl-C
/// reaches only this process, which then drains its children. Children get no descriptor but 0, 1
/// and 2: UCX's sockets are not close-on-exec, and one kept open in a child would hide its parent's
/// death. The token is passed by the environment, never on the command line. Error: `io_error` with
/// the system's reason.
Result<pid_t> spawn_self(std::vector<std::string> arguments, const std::string& token);

/// Waits for children to end, at most `patience`, and takes those that did out of the list.
void reap(std::vector<pid_t>& pids, std::chrono::milliseconds patience);
/// Ends children with SIGKILL; the list is empty then.
void kill_and_reap(std::vector<pid_t>& pids);

/// How a child ended, by waitpid()'s status, as a sentence.
std::string describe_exit(pid_t pid, int status);

}  // namespace troupe::tool
