#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"

namespace troupe::train {

/// Finds the node whose ranks take longer than those of the others, by what the nodes say of
/// themselves about once a second. No I/O, no clock. Threads: one.
class StragglerWatch {
public:
  struct Options {
    double report_factor = 2;  ///< so many times the others' median is reported; 0: nothing is
    double drop_factor = 0;    ///< likewise, to be dropped; 0: nobody is
  };
  struct Verdict {
    std::string sentence;  ///< "its ranks take 40 ms a step, those of the other nodes 10 ms"
    bool drop = false;
  };

  explicit StragglerWatch(Options options) : options_(options) {}

  /// Another set of nodes: what was said before does not count.
  void begin(std::size_t nodes) { paces_.assign(nodes, {}); }

  /// Node `index` takes `seconds` for a step of one rank. A verdict after some such words in a row,
  /// once for each time that it falls behind.
  std::optional<Verdict> pace(std::size_t index, double seconds);

private:
  struct Pace {
    double seconds = 0;  ///< 0: not heard of
    int slow = 0;        ///< times in a row
    bool told = false;
  };
  double median_of_others(std::size_t index) const;

  const Options options_;
  std::vector<Pace> paces_;
};

}  // namespace troupe::train
