#include "runtime/observe/trace.hpp"

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/mutex.hpp"

namespace troupe {
namespace {

struct Event {
  const char* name = "";
  TimePoint begin{};
  TimePoint end{};
  std::uint64_t argument = 0;
};

double microseconds(Duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

}  // namespace

/// Of one thread. Its lock is free but for the moments of start() and json().
struct Trace::Ring {
  explicit Ring(std::size_t size) : events(std::max<std::size_t>(size, 1)) {}

  Mutex mutex;
  std::vector<Event> events TROUPE_GUARDED_BY(mutex);
  std::uint64_t written TROUPE_GUARDED_BY(mutex) = 0;
};

struct Trace::State {
  explicit State(Options o) : options(std::move(o)) {}

  const Options options;
  Mutex mutex;
  std::vector<std::unique_ptr<Ring>> rings TROUPE_GUARDED_BY(mutex);
  TimePoint started TROUPE_GUARDED_BY(mutex){};
};

Trace::Trace(Options options, const Clock& clock)
    : clock_(clock), state_(std::make_shared<State>(std::move(options))) {}

Trace::~Trace() {
  stop();
}

void Trace::start() {
  {
    MutexLock lock(state_->mutex);
    state_->started = clock_.now();
    for (auto& ring : state_->rings) {
      MutexLock ring_lock(ring->mutex);
      ring->written = 0;
    }
  }
  on_.store(true, std::memory_order_relaxed);
}

Trace::Ring* Trace::ring_of_this_thread() {
  // The weak pointer tells traces apart even if one lies where another has been: it keeps the
  // control block, so no two of them compare equal.
  struct Known {
    std::weak_ptr<State> trace;
    Ring* ring;
  };
  thread_local std::vector<Known> known;
  const auto is_this = [&](const Known& k) {
    return !k.trace.owner_before(state_) && !state_.owner_before(k.trace);
  };
  const auto found = std::find_if(known.begin(), known.end(), is_this);
  if (found != known.end()) return found->ring;

  std::erase_if(known, [](const Known& k) { return k.trace.expired(); });
  Ring* ring = nullptr;
  {
    MutexLock lock(state_->mutex);
    if (state_->rings.size() < state_->options.max_threads) {
      state_->rings.push_back(std::make_unique<Ring>(state_->options.events_per_thread));
      ring = state_->rings.back().get();
    }
  }
  known.push_back({state_, ring});
  return ring;
}

void Trace::record(TraceName name, TimePoint begin, TimePoint end, std::uint64_t argument) {
  Ring* ring = ring_of_this_thread();
  if (ring == nullptr) return;
  MutexLock lock(ring->mutex);
  ring->events[ring->written++ % ring->events.size()] = {name.text, begin, end, argument};
}

std::string Trace::json() const {
  const auto quoted = [](const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  MutexLock lock(state_->mutex);
  const auto process = state_->options.process_number;
  std::string out = fmt::format(
      R"({{"traceEvents":[
{{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})",
      process, quoted(state_->options.process));
  for (std::size_t thread = 0; thread < state_->rings.size(); ++thread) {
    Ring& ring = *state_->rings[thread];
    MutexLock ring_lock(ring.mutex);
    const std::uint64_t kept = std::min<std::uint64_t>(ring.written, ring.events.size());
    for (std::uint64_t i = ring.written - kept; i < ring.written; ++i) {
      const Event& event = ring.events[i % ring.events.size()];
      if (event.begin < state_->started) continue;  // begun in an earlier recording
      out += fmt::format(
          ",\n"
          R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"n":{}}}}})",
          quoted(event.name), process, thread + 1, microseconds(event.begin - state_->started),
          microseconds(event.end - event.begin), event.argument);
    }
  }
  return out + "\n],\"displayTimeUnit\":\"ms\"}\n";
}

Status Trace::write(const std::string& path) {
  stop();
  const std::string text = json();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (file) return {};
  return {Code::io_error,
          fmt::format("the trace cannot be written to '{}'; choose a path that can be", path)};
}

}  // namespace troupe
