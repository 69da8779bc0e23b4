#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::bench {

/// A program with its output on a pipe; killed at the end of scope. Threads: one.
class Child {
public:
  explicit Child(std::vector<std::string> words);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// The next line of its output, without the end; empty at the end.
  std::string line();

private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
};

/// Whether ucx_perftest is on the PATH.
bool have_perftest();

/// One figure of one run of ucx_perftest between two processes over loopback: column `column` of
/// its last line. `tls`: UCX_TLS, "all" if empty. 0 if it gave none.
double perftest(const std::string& tls, const std::string& test, std::size_t size, int iterations,
                int column, int port);

}  // namespace troupe::bench
