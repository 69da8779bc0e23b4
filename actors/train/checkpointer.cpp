#include "actors/train/checkpointer.hpp"

#include <fmt/format.h>

#include "actors/checkpoint/checkpoint_store.hpp"
#include "actors/train/weights.hpp"
#include "runtime/remoting/caf_error.hpp"

namespace troupe::train {
namespace {

Result<Saved> write(CheckpointStore& store, const JobConfig& config, const std::string& data_hash,
                    const Write& x) {
  // Nothing in the result's bytes may depend on when or where it was made.
  const Metadata metadata{{"troupe.job", config.name},
                          {std::string(kResultsHashKey), config.results_hash()},
                          {std::string(kResultsKey), config.results_text()}};
  const auto& tensors = x.snapshot.tensors;
  Saved saved;
  saved.steps_done = x.snapshot.steps_done;
  if (x.final_weights) {
    TROUPE_ASSIGN(auto weights, weight_tensors(std::span(tensors).first(x.snapshot.weights),
                                               x.snapshot.steps_done - x.snapshot.skips,
                                               *weights_layout(config.checkpoint.final_layout)));
    weights.metadata.insert(metadata.begin(), metadata.end());
    TROUPE_ASSIGN(auto file, store.save_final(std::move(weights.tensors), weights.metadata));
    saved.path = file.path.string();
    saved.sha256 = file.sha256;
  }
  // Only to go on from: the result is what it is.
  auto progress = metadata;
  progress[std::string(kDataHashKey)] = data_hash;
  if (x.snapshot.skips > 0) progress[std::string(kSkipsKey)] = fmt::format("{}", x.snapshot.skips);
  if (config.optimizer.loss_scale != 0)
    progress[std::string(kLossScaleKey)] = x.snapshot.loss_scale.to_text();
  const auto checkpoint = store.save(x.snapshot.steps_done, tensors, progress);
  if (x.final_weights) {
    // The result is there: that the job could go on from it with more epochs is a comfort.
    if (!checkpoint.ok())
      saved.warning = fmt::format("the result is written, but no checkpoint beside it: {}",
                                  checkpoint.error().message);
    return saved;
  }
  TROUPE_TRY(checkpoint.status());
  saved.path = checkpoint->path.string();
  return saved;
}

}  // namespace

caf::behavior checkpointer(caf::event_based_actor*, JobConfig config, std::string data_hash) {
  auto store =
      std::make_shared<CheckpointStore>(config.checkpoint.directory, config.checkpoint.keep);
  return {
      [store, config = std::move(config),
       data_hash = std::move(data_hash)](const Write& x) -> caf::result<Saved> {
        auto saved = write(*store, config, data_hash, x);
        if (!saved.ok()) return remoting::to_caf(saved.error());
        return std::move(*saved);
      },
  };
}

}  // namespace troupe::train
