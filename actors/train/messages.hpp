#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system_config.hpp>

#include "actors/train/events.hpp"
#include "actors/train/loss_scale.hpp"
#include "runtime/memory/buffer.hpp"
#include "runtime/remoting/buffer_message.hpp"

namespace troupe::train {

// What the actors of a training job say to each other. Nouns and past tense are messages, commands
// imperative. Those that carry `generation` are dropped if it is older than the receiver's.

/// The extra values that each rank adds to a step, in this order. The last three are how the test
/// after an epoch went, and come with the first step of the next: so every node knows the result as
/// soon as it has gone past it.
enum Extra : std::size_t {
  kLossSum,
  kCorrect,
  kNonFinite,  ///< ranks whose gradient or loss is NaN or infinite
  kTestLossSum,
  kTestCorrect,
  kTestSamples,
  kExtras,
};

/// Any actor -> job: it is set up and waits; or it cannot work (code and sentence).
struct Ready {
  std::uint64_t generation = 0;
  std::uint32_t index = 0;  ///< of the replica
  std::string actor;        ///< "trainer 3", "reducer 1": for errors
  std::uint32_t node = 0;   ///< index of the actor's node
  std::uint16_t code = 0;   ///< Code
  std::string message;
  std::uint64_t steps_done = 0;  ///< reducers: in the state they start from
  std::string state_hash;        ///< reducers: of weights and optimizer state; equal on all nodes
  std::string data_hash;         ///< loaders: of the data set; equal on all nodes
  std::string weights_hash;      ///< reducers: Replica::weights_hash(); equal on all nodes
  std::string program;           ///< reducers: program_hash()
  std::string instruction_set;   ///< reducers: that the results depend on, if they do on any
  std::uint64_t steps_per_epoch = 0;  ///< reducers
  std::uint64_t parameters = 0;       ///< reducers: f32 elements of the model
};

/// Job -> a reducer that is behind: take the state of `source`. Answered with Pulled.
struct Pull {
  caf::actor source;
};
struct Pulled {
  std::uint64_t steps_done = 0;
  std::string state_hash;
};
/// Reducer -> reducer, answered with a StateCopy.
struct CopyState {};
struct StateCopy {
  std::uint64_t steps_done = 0;
  std::uint64_t skips = 0;
  LossScale loss_scale;
  Buffer parameters;  ///< f32, as Replica has them
  std::vector<Buffer> optimizer_state;
  std::vector<EpochFinished> epochs;
};

/// Job -> reducers: go on from step `step`.
struct Begin {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  bool evaluate = false;     ///< first test the epoch that ended with the step before
  std::uint64_t epochs = 0;  ///< whose results the job knows; the first reducer tells the others
};

/// A job's new head to all of its actors: from now on `job_actor` is the job. Reducers tell it what
/// it has missed.
struct Adopt {
  std::uint64_t term = 0;  ///< of the head; one of a lower term comes too late
  caf::actor job_actor;
  std::uint64_t steps = 0;   ///< that the job knows of
  std::uint64_t epochs = 0;  ///< whose results it knows
};

/// A job's new head to a reducer; answered with Reported.
struct Report {};
struct Reported {
  std::uint64_t generation = 0;
  std::uint32_t index = 0;  ///< of the node in the generation
  std::uint32_t nodes = 0;  ///< of the generation
  bool begun = false;
  bool stopped = false;  ///< begun, and then halted or failed
  std::uint64_t steps_done = 0;
  std::uint64_t steps_per_epoch = 0;
  std::uint64_t parameters = 0;  ///< f32 elements of the model
};

/// Reducer -> the trainers of its node: compute step `step`; the weights stand still until all
/// have answered with their gradients and extra values (collective::GradientReady, ExtrasReady).
struct StepBegun {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
};

/// Trainer -> its loader, answered with a Batch.
struct NextBatch {
  std::uint64_t step = 0;
};
struct Batch {
  std::uint64_t step = 0;
  std::uint32_t samples = 0;
  Buffer inputs;  ///< [samples] + the input of the data set's layout, in its type
  Buffer labels;  ///< i32 [samples] + the labels of the layout
};

/// Trainer -> its reducer, in the middle of a step: what its rank adds to a sum over all ranks.
/// Answered with SummedValues when all ranks have, or with `stale_generation` if the step ends
/// before.
struct RankValues {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  std::uint32_t call = 0;  ///< the step's sums so far
  std::vector<double> values;
};
struct SummedValues {
  std::vector<double> values;  ///< as many as the longest sum of the step has
};

/// Reducer -> the trainers of its node: run the test samples that are yours.
struct Evaluate {
  std::uint64_t generation = 0;
  std::uint64_t epoch = 0;
};
/// Trainer -> reducer, and after the last epoch from there -> job.
struct Evaluated {
  std::uint64_t generation = 0;
  std::uint64_t epoch = 0;
  std::uint32_t rank = 0;
  std::uint64_t samples = 0;
  std::uint64_t correct = 0;
  double loss_sum = 0;
};

/// Job -> reducers: stop, drop the step in flight. Answered with Halted when no trainer of the node
/// reads the weights any more, or holds memory of its passes.
struct Halt {};
struct Halted {
  std::uint64_t steps_done = 0;
};

/// Reducer -> the trainers of its node: this generation computes no more, give back the memory of
/// your passes. The next one needs it. Answered with Released.
struct Release {};
struct Released {};

/// Job -> a reducer: write your state now. Answered with Saved when it is on disk.
struct Save {
  bool final_weights = false;  ///< the result file as well
};
struct Saved {
  std::uint64_t steps_done = 0;
  std::string path;
  std::string sha256;   ///< of the final weights' file
  std::string warning;  ///< what went wrong beside it, as a sentence
};

/// Reducer -> job, about once a second: what a step of one rank takes on its node.
struct Pace {
  std::uint64_t generation = 0;
  std::uint32_t index = 0;
  double seconds = 0;
};

/// An actor found something wrong that ends the job.
struct Failed {
  std::uint64_t generation = 0;
  std::string actor;
  std::uint16_t code = 0;
  std::string message;
};

/// Reducer with the last step -> job.
struct LastStepDone {
  std::uint64_t generation = 0;
  std::uint64_t steps_done = 0;
};

template <class Inspector>
auto inspect(Inspector& f, Ready& x) {
  return f(x.generation, x.index, x.actor, x.node, x.code, x.message, x.steps_done, x.state_hash,
           x.data_hash, x.weights_hash, x.program, x.instruction_set, x.steps_per_epoch,
           x.parameters);
}
template <class Inspector>
auto inspect(Inspector& f, Pull& x) {
  return f(x.source);
}
template <class Inspector>
auto inspect(Inspector& f, Pulled& x) {
  return f(x.steps_done, x.state_hash);
}
template <class Inspector>
auto inspect(Inspector& f, CopyState&) {
  return f();
}
template <class Inspector>
auto inspect(Inspector& f, StateCopy& x) {
  return f(x.steps_done, x.skips, x.loss_scale, x.parameters, x.optimizer_state, x.epochs);
}
template <class Inspector>
auto inspect(Inspector& f, Begin& x) {
  return f(x.generation, x.step, x.evaluate, x.epochs);
}
template <class Inspector>
auto inspect(Inspector& f, Adopt& x) {
  return f(x.term, x.job_actor, x.steps, x.epochs);
}
template <class Inspector>
auto inspect(Inspector& f, Report&) {
  return f();
}
template <class Inspector>
auto inspect(Inspector& f, Reported& x) {
  return f(x.generation, x.index, x.nodes, x.begun, x.stopped, x.steps_done, x.steps_per_epoch,
           x.parameters);
}
template <class Inspector>
auto inspect(Inspector& f, StepBegun& x) {
  return f(x.generation, x.step);
}
template <class Inspector>
auto inspect(Inspector& f, NextBatch& x) {
  return f(x.step);
}
template <class Inspector>
auto inspect(Inspector& f, Batch& x) {
  return f(x.step, x.samples, x.inputs, x.labels);
}
template <class Inspector>
auto inspect(Inspector& f, RankValues& x) {
  return f(x.generation, x.step, x.rank, x.call, x.values);
}
template <class Inspector>
auto inspect(Inspector& f, SummedValues& x) {
  return f(x.values);
}
template <class Inspector>
auto inspect(Inspector& f, Evaluate& x) {
  return f(x.generation, x.epoch);
}
template <class Inspector>
auto inspect(Inspector& f, Evaluated& x) {
  return f(x.generation, x.epoch, x.rank, x.samples, x.correct, x.loss_sum);
}
template <class Inspector>
auto inspect(Inspector& f, Halt&) {
  return f();
}
template <class Inspector>
auto inspect(Inspector& f, Halted& x) {
  return f(x.steps_done);
}
template <class Inspector>
auto inspect(Inspector& f, Release&) {
  return f();
}
template <class Inspector>
auto inspect(Inspector& f, Released&) {
  return f();
}
template <class Inspector>
auto inspect(Inspector& f, Save& x) {
  return f(x.final_weights);
}
template <class Inspector>
auto inspect(Inspector& f, Saved& x) {
  return f(x.steps_done, x.path, x.sha256, x.warning);
}
template <class Inspector>
auto inspect(Inspector& f, Pace& x) {
  return f(x.generation, x.index, x.seconds);
}
template <class Inspector>
auto inspect(Inspector& f, Failed& x) {
  return f(x.generation, x.actor, x.code, x.message);
}
template <class Inspector>
auto inspect(Inspector& f, LastStepDone& x) {
  return f(x.generation, x.steps_done);
}

/// Adds these messages and Setup to an actor system's types.
void add_train_message_types(caf::actor_system_config& config);

}  // namespace troupe::train
