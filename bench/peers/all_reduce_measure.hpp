#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

// How one all-reduce is measured: the same code for ours and for each peer.

namespace troupe::bench {

struct AllReduceCase {
  std::size_t bytes = 0;
  const float* in = nullptr;
  /// Runs `times` all-reduces one after the other; returns where the last sum is.
  std::function<const float*(int times)> run;
  std::function<void()> barrier;
};

struct AllReduceResult {
  std::size_t bytes = 0;
  std::string algorithm;
  double median_s = 0, min_s = 0, max_s = 0;
  bool correct = false;
};

/// Small integers: their sums are exact in f32 in any order.
inline float input_value(int rank, std::size_t i) {
  return static_cast<float>((i + static_cast<std::size_t>(rank) * 7) % 251);
}

inline void fill_input(float* data, std::size_t count, int rank) {
  for (std::size_t i = 0; i < count; ++i) data[i] = input_value(rank, i);
}

inline bool is_sum(const float* data, std::size_t count, int ranks) {
  for (std::size_t i = 0; i < count; ++i) {
    float want = 0;
    for (int r = 0; r < ranks; ++r) want += input_value(r, i);
    if (data[i] != want) return false;
  }
  return true;
}

/// Small sizes many times a sample, so that the clock and a barrier's skew do not count.
inline int times_per_sample(std::size_t bytes) {
  return static_cast<int>(std::clamp<std::size_t>((std::size_t{32} << 20) / bytes, 1, 200));
}

inline AllReduceResult measure(const AllReduceCase& c, int ranks, int samples,
                               const std::string& algorithm) {
  AllReduceResult result{c.bytes, algorithm, 0, 0, 0, false};
  const int times = times_per_sample(c.bytes);
  const std::size_t count = c.bytes / sizeof(float);
  c.run(2);
  result.correct = is_sum(c.run(1), count, ranks);
  std::vector<double> seconds;
  for (int i = 0; i < samples; ++i) {
    c.barrier();
    const auto begin = std::chrono::steady_clock::now();
    c.run(times);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    seconds.push_back(took.count() / times);
  }
  result.correct = result.correct && is_sum(c.run(1), count, ranks);
  std::sort(seconds.begin(), seconds.end());
  result.median_s = seconds[seconds.size() / 2];
  result.min_s = seconds.front();
  result.max_s = seconds.back();
  return result;
}

/// One line per result, read by all_reduce_bench.
inline void print(std::FILE* file, const AllReduceResult& r) {
  std::fprintf(
      file,
      "{\"bytes\":%zu,\"algorithm\":\"%s\",\"median_s\":%.9f,\"min_s\":%.9f,\"max_s\":%.9f,"
      "\"correct\":%s}\n",
      r.bytes, r.algorithm.c_str(), r.median_s, r.min_s, r.max_s, r.correct ? "true" : "false");
  std::fflush(file);
}

/// "4096,65536" as numbers.
inline std::vector<std::size_t> parse_sizes(const char* text) {
  std::vector<std::size_t> sizes;
  for (const char* at = text; *at != '\0';) {
    char* end = nullptr;
    sizes.push_back(std::strtoull(at, &end, 10));
    at = *end == ',' ? end + 1 : end;
    if (end == text) break;
  }
  return sizes;
}

}  // namespace troupe::bench
