#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/mutex.hpp"

namespace troupe {

// What is counted while a node runs, in the text format of Prometheus. Threads: any, for all of it;
// counting is one relaxed atomic operation (two for a histogram).

/// Only grows.
class Counter {
public:
  void add(std::uint64_t by = 1) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
  std::atomic<std::uint64_t> value_{0};
};

/// Goes up and down.
class Gauge {
public:
  void set(double to) noexcept { value_.store(to, std::memory_order_relaxed); }
  void add(double by) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
  double value() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
  std::atomic<double> value_{0};
};

/// Counts values by size: one bucket for each bound, with what is not above it, and one for the
/// rest.
class Histogram {
public:
  /// `bounds` ascend strictly.
  explicit Histogram(std::vector<double> bounds);

  void observe(double value) noexcept;

  const std::vector<double>& bounds() const { return bounds_; }
  /// Values in each bucket, the rest last.
  std::vector<std::uint64_t> counts() const;
  double sum() const noexcept { return sum_.load(std::memory_order_relaxed); }

private:
  const std::vector<double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
  std::atomic<double> sum_{0};
};

/// `count` bounds from `first`, each `factor` times the one before.
std::vector<double> exponential_bounds(double first, double factor, std::size_t count);

/// The metrics of one node. A metric is made when it is first asked for, and the same one is given
/// out for the same name and labels after that: ask once, keep the reference.
///
/// Ownership: owns the metrics; a reference holds as long as this does.
/// Failure:   a name that is not one, or that belongs to another kind of metric, is a mistake in
/// the
///            program and aborts. Values of labels may be anything.
class Metrics {
public:
  using Labels = std::map<std::string, std::string>;

  Metrics() = default;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  Counter& counter(const std::string& name, std::string_view help, const Labels& labels = {});
  Gauge& gauge(const std::string& name, std::string_view help, const Labels& labels = {});
  /// All histograms of one name have the bounds of the first.
  Histogram& histogram(const std::string& name, std::string_view help, std::vector<double> bounds,
                       const Labels& labels = {});

  /// All of them, sorted by name and labels; text format 0.0.4.
  std::string text() const;

private:
  using Metric =
      std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>, std::unique_ptr<Histogram>>;
  struct Family {
    std::string help;
    std::map<Labels, Metric> metrics;
  };

  template <class M, class Make>
  M& get(const std::string& name, std::string_view help, const Labels& labels, const Make& make);

  mutable Mutex mutex_;
  std::map<std::string, Family> families_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace troupe
