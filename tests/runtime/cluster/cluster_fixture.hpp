#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <gtest/gtest.h>

#include "runtime/base/mutex.hpp"
#include "runtime/cluster/runtime.hpp"

namespace troupe {

using namespace std::chrono_literals;

/// Works for ever and does not take an exit message for an answer.
inline caf::behavior stubborn(caf::event_based_actor* self) {
  self->set_exit_handler([](const caf::exit_msg&) {});
  self->send(self, std::int32_t{0});
  return {[self](std::int32_t n) { self->delayed_send(self, std::chrono::milliseconds(1), n); }};
}

/// An actor type that other nodes may spawn: answers with its prefix and what it got.
inline caf::behavior echo(caf::event_based_actor*, std::string prefix) {
  return {[prefix = std::move(prefix)](const std::string& text) { return prefix + text; }};
}

inline RuntimeOptions test_options(std::string name = "node") {
  RuntimeOptions options;
  options.name = std::move(name);
  options.configure = [](caf::actor_system_config& config) {
    config.add_actor_type("echo", echo);
    config.add_actor_type("stubborn", stubborn);
  };
  return options;
}

inline std::unique_ptr<Runtime> start_head(RuntimeOptions options = test_options("head")) {
  auto head = Runtime::start_cluster(std::move(options));
  if (!head.ok()) ADD_FAILURE() << head.error().message;
  return head.ok() ? std::move(*head) : nullptr;
}

inline std::unique_ptr<Runtime> join(const transport::Address& head,
                                     RuntimeOptions options = test_options()) {
  auto node = Runtime::join(head, std::move(options));
  if (!node.ok()) ADD_FAILURE() << node.error().message;
  return node.ok() ? std::move(*node) : nullptr;
}

/// Waits for the views of a runtime.
class ViewWatcher {
public:
  explicit ViewWatcher(Runtime& runtime) : runtime_(runtime) {
    subscription_ =
        runtime.subscribe([this](const View& view, const std::vector<Departure>& departures) {
          MutexLock lock(mutex_);
          view_ = view;
          departures_.insert(departures_.end(), departures.begin(), departures.end());
          changed_.notify_all();
        });
    MutexLock lock(mutex_);
    if (view_.generation == 0) view_ = runtime.view();
  }
  ~ViewWatcher() { runtime_.unsubscribe(subscription_); }

  bool wait_for(const std::function<bool(const View&)>& condition, Duration timeout = 20s) {
    const auto until = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(mutex_);
    while (!condition(view_))
      if (changed_.wait_until(mutex_, until) == std::cv_status::timeout) return condition(view_);
    return true;
  }
  bool wait_for_size(std::size_t size) {
    return wait_for([size](const View& view) { return view.members.size() == size; });
  }
  std::vector<Departure> departures() {
    MutexLock lock(mutex_);
    return departures_;
  }

private:
  Runtime& runtime_;
  std::uint64_t subscription_ = 0;
  Mutex mutex_;
  CondVar changed_;
  View view_ TROUPE_GUARDED_BY(mutex_);
  std::vector<Departure> departures_ TROUPE_GUARDED_BY(mutex_);
};

/// Asks an echo actor from a blocking actor of `runtime`.
inline Result<std::string> ask(Runtime& runtime, const caf::actor& actor, const std::string& text) {
  caf::scoped_actor self(runtime.system());
  Result<std::string> answer = Error{Code::internal, "no answer"};
  self->request(actor, 10s, text)
      .receive([&](const std::string& got) { answer = got; },
               [&](const caf::error& error) {
                 answer = Error{Code::unavailable, runtime.system().render(error)};
               });
  return answer;
}

}  // namespace troupe
