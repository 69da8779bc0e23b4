#include "actors/job/job_graph.hpp"

#include <algorithm>

#include "actors/collective/messages.hpp"
#include "actors/collective/reducer.hpp"
#include "actors/job/register.hpp"
#include "actors/train/messages.hpp"

namespace troupe::train {

std::unique_ptr<graph::Graph> job_graph(const JobConfig& config, const Setup& setup) {
  const auto arguments = [setup](const graph::Replica& replica) {
    Setup own = setup;
    own.generation = replica.generation;
    own.index = replica.index;
    return caf::make_message(std::move(own));
  };
  auto result = std::make_unique<graph::Graph>(config.name);
  auto& g = *result;
  const auto add = [&](const char* name, const char* type, graph::Replicas replicas,
                       std::uint32_t slots) {
    graph::ActorSpec spec;
    spec.name = name;
    spec.type = type;
    spec.replicas = replicas;
    spec.needs.slots = slots;
    spec.arguments = arguments;
    return g.add(std::move(spec));
  };
  const auto loader = add("loader", kLoaderType, graph::per_rank(), 0);
  const bool waits = config.model.synchronized_batch_norm || config.device != "cpu";
  const auto trainer =
      add("trainer", waits ? kDetachedTrainerType : kTrainerType, graph::per_rank(), 1);
  const auto reducer = add("reducer", kReducerType, graph::per_node(), 0);

  g.connect(
      loader.output<Batch>(kBatches), trainer.input<Batch>(kBatches),
      {.pattern = graph::Pattern::one_to_one, .capacity = std::max(1u, config.operation.prefetch)});
  g.connect(trainer.output<collective::GradientReady>(kGradients),
            reducer.input<collective::GradientReady>(kGradients),
            {.pattern = graph::Pattern::local});
  // Each reducer feeds all others, and they it: a cycle on purpose.
  g.connect(reducer.output<collective::Partial>(kPartials),
            reducer.input<collective::Partial>(kPartials),
            {.pattern = graph::Pattern::all_to_all, .feedback = true});
  return result;
}

}  // namespace troupe::train
