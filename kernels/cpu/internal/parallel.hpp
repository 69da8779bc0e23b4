#pragma once

#include <algorithm>
#include <cstddef>

namespace troupe::kernels::cpu {

/// Calls `body(part, data)` for each part 0..parts-1, each on a thread of its own out of the OpenMP
/// pool of the calling thread (the one that oneDNN uses). Returns when all are done.
void run_parts(int parts, void (*body)(int part, void* data), void* data);

/// Calls `body(begin, end)` for runs that make up 0..n, at most `threads` at the same time; none
/// but the last is shorter than `least`. What an element becomes must not depend on its run.
template <class Body>
void parallel_for(int threads, std::size_t n, std::size_t least, Body&& body) {
  // Runs begin where cache lines of floats do.
  constexpr std::size_t kStep = 16;
  const std::size_t most = std::max<std::size_t>(1, n / std::max<std::size_t>(least, 1));
  const int parts =
      static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), most));
  if (parts <= 1) {
    body(std::size_t{0}, n);
    return;
  }
  struct Data {
    Body& body;
    std::size_t n, run;
  } data{body, n, (n / static_cast<std::size_t>(parts) + kStep) / kStep * kStep};
  run_parts(
      parts,
      [](int part, void* pointer) {
        const Data& d = *static_cast<Data*>(pointer);
        const std::size_t begin = std::min(d.n, static_cast<std::size_t>(part) * d.run);
        const std::size_t end = std::min(d.n, begin + d.run);
        if (begin < end) d.body(begin, end);
      },
      &data);
}

/// Calls `body(item, part)` for each item 0..items-1: each part, of at most `threads`, goes through
/// a run of them in order while the others do. What an item does must not depend on its part, which
/// is for scratch memory.
template <class Body>
void parallel_each(int threads, std::size_t items, Body&& body) {
  const auto parts = std::min<std::size_t>(static_cast<std::size_t>(threads), items);
  if (parts <= 1) {
    for (std::size_t item = 0; item < items; ++item) body(item, std::size_t{0});
    return;
  }
  struct Data {
    Body& body;
    std::size_t items, parts;
  } data{body, items, parts};
  run_parts(
      static_cast<int>(parts),
      [](int number, void* pointer) {
        const Data& d = *static_cast<Data*>(pointer);
        const auto part = static_cast<std::size_t>(number);
        const std::size_t end = (part + 1) * d.items / d.parts;
        for (std::size_t item = part * d.items / d.parts; item < end; ++item) d.body(item, part);
      },
      &data);
}

}  // namespace troupe::kernels::cpu
