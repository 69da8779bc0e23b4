// Two nodes of a cluster, here in one process, and an actor on one that the other talks to.
//
// usage: ping [COUNT]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include "runtime/cluster/runtime.hpp"

namespace {

using Clock = std::chrono::steady_clock;

caf::behavior echo() {
  return {[](std::uint64_t number) { return number; }};
}

/// Sends `count` numbers there and back, one after the other.
troupe::Status ping(caf::actor_system& system, const caf::actor& target, std::uint64_t count) {
  caf::scoped_actor self(system);
  std::vector<Clock::duration> round_trips;
  troupe::Status status;
  for (std::uint64_t i = 0; i < count && status.ok(); ++i) {
    const auto sent = Clock::now();
    self->request(target, std::chrono::seconds(5), i)
        .receive(
            [&](std::uint64_t answer) {
              round_trips.push_back(Clock::now() - sent);
              if (answer != i) status = {troupe::Code::internal, "another number came back"};
            },
            [&](const caf::error&) {
              status = {troupe::Code::unavailable, "no answer; is the other node alive?"};
            });
  }
  if (!status.ok()) return status;
  const auto middle = round_trips.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(round_trips.begin(), middle, round_trips.end());
  std::printf("%llu answers, median round trip %.1f us\n", static_cast<unsigned long long>(count),
              std::chrono::duration<double, std::micro>(*middle).count());
  return status;
}

troupe::Status run(std::uint64_t count) {
  troupe::RuntimeOptions options;
  options.configure = [](caf::actor_system_config& config) { config.add_actor_type("echo", echo); };
  options.name = "head";
  TROUPE_ASSIGN(auto head, troupe::Runtime::start_cluster(options));
  options.name = "node";
  TROUPE_ASSIGN(auto node, troupe::Runtime::join(head->address(), options));

  TROUPE_ASSIGN(auto target, head->spawn_on(node->id(), "echo", caf::make_message()));
  const auto status = ping(head->system(), target, count);
  // A remote actor ends like any other; letting go of its handle would do for a cluster that stops.
  caf::scoped_actor(head->system())->send_exit(target, caf::exit_reason::user_shutdown);
  target = nullptr;

  node->stop();
  head->stop();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
  if (argc > 2 || count == 0) {
    std::fprintf(stderr, "usage: ping [COUNT]   (COUNT at least 1)\n");
    return 2;
  }
  const auto status = run(count);
  if (!status.ok()) std::fprintf(stderr, "ping: %s\n", to_string(status.error()).c_str());
  return status.ok() ? 0 : 1;
}
