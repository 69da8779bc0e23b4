// What a user's program looks like: installed headers by <troupe/...>, and nothing of the sources.
// The README shows this one.
#include <cstdio>

#include <caf/all.hpp>
#include <troupe/runtime/cluster/runtime.hpp>

using namespace std::chrono_literals;

caf::behavior greeter() {
  return {[](const std::string& name) { return "hello, " + name; }};
}

troupe::Status greet() {
  troupe::RuntimeOptions options;
  options.configure = [](caf::actor_system_config& config) {
    config.add_actor_type("greeter", greeter);
  };

  // A cluster of two nodes. They may as well be two processes, or two machines.
  TROUPE_ASSIGN(auto head, troupe::Runtime::start_cluster(options));
  TROUPE_ASSIGN(auto node, troupe::Runtime::join(head->address(), options));

  // An actor on the other node, used like any other.
  TROUPE_ASSIGN(auto remote, head->spawn_on(node->id(), "greeter", caf::make_message()));
  troupe::Status status;
  caf::scoped_actor self{head->system()};
  self->request(remote, 5s, std::string{"actors"})
      .receive([](const std::string& answer) { std::printf("%s\n", answer.c_str()); },
               [&](const caf::error& error) {
                 status = {troupe::Code::unavailable, caf::to_string(error)};
               });
  return status;
}

int main() {
  const auto status = greet();
  if (!status.ok()) std::fprintf(stderr, "%s\n", troupe::to_string(status.error()).c_str());
  return status.ok() ? 0 : 1;
}
