// A graph of one's own: a source whose numbers go to workers, one for each rank, and a sink that
// adds up what they make of them. It runs on three nodes, here all in one process.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include <caf/behavior.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "runtime/cluster/runtime.hpp"
#include "runtime/graph/deploy.hpp"
#include "runtime/graph/ports.hpp"
#include "runtime/graph/print.hpp"

namespace {

using namespace troupe;

struct State {
  explicit State(caf::event_based_actor* self) : ports(self) {}
  graph::Ports ports;
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
};
using Self = caf::stateful_actor<State>;

/// Sends 0, 1, ... limit-1, as fast as the workers take them.
caf::behavior source(Self* self, std::uint64_t limit) {
  auto& state = self->state;
  auto& numbers = state.ports.output<std::uint64_t>("numbers");
  const auto pump = [&state, &numbers, limit] {
    while (state.count < limit && numbers.ready())
      if (numbers.send(state.count).ok()) ++state.count;
    if (state.count == limit) numbers.finish();
  };
  numbers.on_ready(pump);
  state.ports.on_start(pump);
  return state.ports.handlers();
}

/// Squares each number. One that cannot be sent on waits, and its credit with it.
class Worker {
public:
  explicit Worker(caf::event_based_actor* self)
      : ports(self),
        squares_(ports.output<std::uint64_t>("squares")),
        numbers_(ports.input<std::uint64_t>(
            "numbers",
            [this](std::uint64_t number, const graph::Origin& from) {
              waiting_.push_back({number, from});
              pump();
            },
            graph::Consume::by_hand)) {
    squares_.on_ready([this] { pump(); });
    numbers_.on_finished([this] {
      finished_ = true;
      pump();
    });
  }

  graph::Ports ports;

private:
  struct Number {
    std::uint64_t value;
    graph::Origin from;
  };

  void pump() {
    while (!waiting_.empty() && squares_.ready()) {
      const auto [value, from] = waiting_.front();
      if (!squares_.send(value * value).ok()) return;
      waiting_.erase(waiting_.begin());
      numbers_.consumed(from);
    }
    if (finished_ && waiting_.empty()) squares_.finish();
  }

  graph::CreditSender<std::uint64_t>& squares_;
  graph::CreditReceiver<std::uint64_t>& numbers_;
  std::vector<Number> waiting_;
  bool finished_ = false;
};

caf::behavior worker(caf::stateful_actor<Worker>* self) {
  return self->state.ports.handlers();
}

/// Tells `observer` how many squares came, and their sum.
caf::behavior sink(Self* self, caf::actor observer) {
  auto& state = self->state;
  auto& squares = state.ports.input<std::uint64_t>(
      "squares", [&state](std::uint64_t square, const graph::Origin&) {
        state.sum += square;
        ++state.count;
      });
  squares.on_finished(
      [self, observer] { self->send(observer, self->state.count, self->state.sum); });
  return state.ports.handlers();
}

void add_types(caf::actor_system_config& config) {
  graph::add_message_types(config);
  config.add_actor_type("source", source)
      .add_actor_type("worker", worker)
      .add_actor_type("sink", sink);
}

void build(graph::Graph& g, std::uint64_t limit, const caf::actor& observer) {
  graph::ActorSpec spec;
  spec.name = "source";
  spec.arguments = [limit](const graph::Replica&) { return caf::make_message(limit); };
  auto from = g.add(spec);
  spec.name = "sink";
  spec.arguments = [observer](const graph::Replica&) { return caf::make_message(observer); };
  auto to = g.add(spec);
  spec.name = "worker";
  spec.arguments = nullptr;
  spec.replicas = graph::per_rank();
  auto work = g.add(spec);

  g.connect(from.output<std::uint64_t>("numbers"), work.input<std::uint64_t>("numbers"),
            {.pattern = graph::Pattern::all_to_all, .capacity = 8});
  g.connect(work.output<std::uint64_t>("squares"), to.input<std::uint64_t>("squares"),
            {.pattern = graph::Pattern::gather, .capacity = 8});
}

Status run_graph(Runtime& head) {
  caf::scoped_actor self(head.system());
  graph::Graph g("squares");
  build(g, 1000, caf::actor_cast<caf::actor>(self.ptr()));

  std::vector<graph::NodeOffer> offers;
  for (const auto& member : head.view().members) offers.push_back(graph::offer_of(member));
  TROUPE_ASSIGN(auto placement, graph::place(g, offers, 4));
  std::printf("%s\n", graph::to_text(g, placement).c_str());

  graph::FunctionSpawner spawner([&](NodeId node, const std::string& type, caf::message arguments,
                                     auto done) {
    head.spawn_on_async(node, type, std::move(arguments), std::chrono::seconds(5), std::move(done));
  });
  TROUPE_ASSIGN(auto deployment, graph::deploy(g, placement, spawner, head.system()));
  Status status;
  self->receive(
      [](std::uint64_t count, std::uint64_t sum) {
        std::printf("sum of %llu squares: %llu\n", static_cast<unsigned long long>(count),
                    static_cast<unsigned long long>(sum));
      },
      caf::after(std::chrono::seconds(30)) >>
          [&] {
            status = {Code::deadline_exceeded, "the sink has not got everything within 30 s"};
          });
  TROUPE_TRY(deployment.undeploy());
  return status;
}

Status run() {
  RuntimeOptions options;
  options.configure = add_types;
  options.name = "head";
  TROUPE_ASSIGN(auto head, Runtime::start_cluster(options));
  std::vector<std::unique_ptr<Runtime>> nodes;
  for (const char* name : {"node-1", "node-2"}) {
    options.name = name;
    TROUPE_ASSIGN(auto node, Runtime::join(head->address(), options));
    nodes.push_back(std::move(node));
  }
  TROUPE_TRY(head->wait_for_nodes(3, std::chrono::seconds(5)));
  const auto status = run_graph(*head);
  for (auto& node : nodes) node->stop();
  head->stop();
  return status;
}

}  // namespace

int main() {
  const auto status = run();
  if (!status.ok()) std::fprintf(stderr, "graph_example: %s\n", to_string(status.error()).c_str());
  return status.ok() ? 0 : 1;
}
