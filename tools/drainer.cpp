#include "tools/drainer.hpp"

#include <chrono>
#include <utility>

namespace troupe::tool {

Drainer::Drainer(Runtime& runtime, std::function<bool()> is_idle, Duration patience)
    : runtime_(runtime), is_idle_(std::move(is_idle)), patience_(patience) {
  subscription_ = runtime_.subscribe([this](const View& view, const auto&) {
    const Member* self = view.find(runtime_.id());
    if (self != nullptr && self->draining) begin();
  });
}

Drainer::~Drainer() {
  runtime_.unsubscribe(subscription_);
  ending_ = true;
  if (thread_.joinable()) thread_.join();
}

void Drainer::drain() {
  (void)runtime_.drain(runtime_.id());
  begin();
}

void Drainer::begin() {
  if (!begun_.exchange(true)) thread_ = std::thread([this] { work(); });
}

bool Drainer::may_go() const {
  const View view = runtime_.view();
  const Member* self = view.find(runtime_.id());
  return self != nullptr && self->draining && is_idle_();
}

void Drainer::work() {
  constexpr auto kLook = std::chrono::milliseconds(10);
  const auto until = std::chrono::steady_clock::now() + patience_;
  // Out in any way ends the wait.
  while (!ending_ && std::chrono::steady_clock::now() < until &&
         !runtime_.wait_until_out(kLook).ok())
    if (may_go()) break;
  runtime_.stop();
}

}  // namespace troupe::tool
