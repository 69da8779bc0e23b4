#include "runtime/observe/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/check.hpp"

namespace troupe {
namespace {

bool is_name(std::string_view text, bool colons) {
  const auto fits = [&](char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c == ':' && colons) ||
           (!first && c >= '0' && c <= '9');
  };
  if (text.empty()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!fits(text[i], i == 0)) return false;
  return true;
}

std::string escape(std::string_view text, bool quotes) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\\' || (c == '"' && quotes)) {
      (escaped += '\\') += c;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string number(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", x);
}

/// {a="b",le="1"}; empty for no labels.
std::string label_text(const Metrics::Labels& labels, std::string_view le = {}) {
  std::string text;
  for (const auto& [key, value] : labels)
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", key, escape(value, true));
  if (!le.empty()) text += fmt::format("{}le=\"{}\"", text.empty() ? "" : ",", le);
  return text.empty() ? text : "{" + text + "}";
}

/// How each kind of metric is called and written.
struct Writer {
  const std::string& name;
  const Metrics::Labels& labels;
  std::string& out;

  void operator()(const std::unique_ptr<Counter>& counter) const {
    out += fmt::format("{}{} {}\n", name, label_text(labels), counter->value());
  }
  void operator()(const std::unique_ptr<Gauge>& gauge) const {
    out += fmt::format("{}{} {}\n", name, label_text(labels), number(gauge->value()));
  }
  void operator()(const std::unique_ptr<Histogram>& histogram) const {
    const auto counts = histogram->counts();
    std::uint64_t up_to = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      up_to += counts[i];
      const bool rest = i == histogram->bounds().size();
      const std::string le = rest ? "+Inf" : number(histogram->bounds()[i]);
      out += fmt::format("{}_bucket{} {}\n", name, label_text(labels, le), up_to);
    }
    out += fmt::format("{}_sum{} {}\n", name, label_text(labels), number(histogram->sum()));
    out += fmt::format("{}_count{} {}\n", name, label_text(labels), up_to);
  }
};

constexpr const char* kKinds[] = {"counter", "gauge", "histogram"};  // as in Metric

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)),
      counts_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1)) {
  TROUPE_CHECK(
      std::adjacent_find(bounds_.begin(), bounds_.end(), std::greater_equal<>()) == bounds_.end(),
      "a histogram's bounds must ascend");
}

void Histogram::observe(double value) noexcept {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::uint64_t> Histogram::counts() const {
  std::vector<std::uint64_t> counts(bounds_.size() + 1);
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] = counts_[i].load(std::memory_order_relaxed);
  return counts;
}

std::vector<double> exponential_bounds(double first, double factor, std::size_t count) {
  std::vector<double> bounds(count);
  for (auto& bound : bounds) {
    bound = first;
    first *= factor;
  }
  return bounds;
}

template <class M, class Make>
M& Metrics::get(const std::string& name, std::string_view help, const Labels& labels,
                const Make& make) {
  TROUPE_CHECK(is_name(name, true), "'" + name + "' is no metric name: letters, digits, _ and :");
  for (const auto& [key, value] : labels)
    TROUPE_CHECK(is_name(key, false) && key != "le",
                 "metric '" + name + "' cannot have a label named '" + key + "'");
  MutexLock lock(mutex_);
  Family& family = families_[name];
  if (family.metrics.empty()) family.help = help;
  auto found = family.metrics.find(labels);
  if (found == family.metrics.end()) {
    const bool same_kind = family.metrics.empty() || std::holds_alternative<std::unique_ptr<M>>(
                                                         family.metrics.begin()->second);
    TROUPE_CHECK(same_kind, "metric '" + name + "' is of another kind already");
    const auto* first = family.metrics.empty()
                            ? nullptr
                            : std::get<std::unique_ptr<M>>(family.metrics.begin()->second).get();
    found = family.metrics.emplace(labels, make(first)).first;
  }
  auto* metric = std::get_if<std::unique_ptr<M>>(&found->second);
  TROUPE_CHECK(metric != nullptr, "metric '" + name + "' is of another kind already");
  return **metric;
}

Counter& Metrics::counter(const std::string& name, std::string_view help, const Labels& labels) {
  return get<Counter>(name, help, labels,
                      [](const Counter*) { return std::make_unique<Counter>(); });
}

Gauge& Metrics::gauge(const std::string& name, std::string_view help, const Labels& labels) {
  return get<Gauge>(name, help, labels, [](const Gauge*) { return std::make_unique<Gauge>(); });
}

Histogram& Metrics::histogram(const std::string& name, std::string_view help,
                              std::vector<double> bounds, const Labels& labels) {
  return get<Histogram>(name, help, labels, [&](const Histogram* first) {
    return std::make_unique<Histogram>(first != nullptr ? first->bounds() : std::move(bounds));
  });
}

std::string Metrics::text() const {
  MutexLock lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    const std::size_t kind = family.metrics.begin()->second.index();
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escape(family.help, false), name,
                       kKinds[kind]);
    for (const auto& [labels, metric] : family.metrics)
      std::visit(Writer{name, labels, out}, metric);
  }
  return out;
}

}  // namespace troupe
