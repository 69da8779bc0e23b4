#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.hpp"

namespace troupe::train {

// A job as its file says. docs/job-file.md describes every key; the groups are the file's tables.

struct ModelConfig {
  std::string name = {};  ///< as kernels::make_model() has them
  std::vector<std::uint32_t> hidden =
      {};                      ///< mlp: width of each hidden layer; empty is a linear model
  std::uint32_t classes = 10;  ///< labels, and tokens, are 0 .. classes-1
  bool small_images = false;   ///< resnet: a first layer for images of 28 to 64 pixels
  /// resnet, vgg: channels of its first stage (0: 64); gpt: of its stream; lstm: of its hidden
  /// state (0: 128).
  std::uint32_t width = 0;
  /// resnet, vgg16_bn: the batches of all ranks are normalized as one.
  bool synchronized_batch_norm = false;
  std::uint32_t layers = 0;             ///< gpt; lstm (0: 1)
  std::uint32_t heads = 0;              ///< gpt; they share its width equally
  double dropout = 0.0;                 ///< gpt, lstm: the share that is zeroed in training
  double label_smoothing = 0.0;         ///< the share of each label that all classes get alike
  std::filesystem::path weights = {};   ///< a file (safetensors) to start from; empty: by the seed
  std::vector<std::string> fresh = {};  ///< parameters that start by the seed all the same
};

struct DataConfig {
  std::string format = "idx";
  std::filesystem::path directory = {};  ///< in front of the six names below; cifar: the data
  std::filesystem::path train = {};      ///< images: folder; tar: shards; tokens, text: file
  std::filesystem::path test = {};
  std::filesystem::path train_images = {};  ///< idx
  std::filesystem::path train_labels = {};
  std::filesystem::path test_images = {};
  std::filesystem::path test_labels = {};
  std::uint64_t batch = 0;           ///< samples of one step over all ranks
  bool drop_last = true;             ///< an epoch's last, incomplete batch is left out
  std::uint32_t image_size = 0;      ///< images, tar: height and width that images are cut to
  std::uint32_t tokens = 0;          ///< tokens, text: of one sample
  std::string token_type = "u16";    ///< tokens: "u16" or "i32", as they are in the file
  std::string augment = "none";      ///< of training samples: "none" or "crop_flip"
  std::string bad_samples = "stop";  ///< at a sample that cannot be decoded: "stop" or "skip"
  /// A pixel is fed as (pixel / 255 - mean) / std. One number, or one for each channel.
  std::vector<double> mean = {0.0};
  std::vector<double> std = {1.0};
};

struct ScheduleConfig {
  std::string kind = "constant";   ///< "constant", "step", "cosine", "linear" or "one_cycle"
  std::uint64_t warmup_steps = 0;  ///< the rate first grows from 0 over so many steps
  std::uint64_t step_epochs = 1;   ///< step: the rate changes after so many epochs
  double gamma = 0.1;              ///< step: and is multiplied by this
  double final_lr = 0.0;           ///< cosine, linear: the rate at the end
  double pct_start = 0.3;          ///< one_cycle: the share of the steps in which the rate grows
  double div_factor = 25.0;        ///< one_cycle: it begins at lr over this
  double final_div_factor = 1e4;   ///< one_cycle: and ends at its beginning over this
};

struct OptimizerConfig {
  std::string name = "sgd";  ///< these as kernels::OptimizerOptions has them
  double lr = 0.01;
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double trust_coefficient = 0.001;
  bool decay_vectors = true;
  double clip_norm = 0.0;           ///< the most that the mean gradient's norm may be; 0: anything
  std::string non_finite = "stop";  ///< at a gradient that is NaN or infinite: "stop" or "skip"
  double loss_scale = 0.0;          ///< what the loss scale begins as, a power of two; 0: none
  std::uint64_t loss_scale_steps = 2000;  ///< in a row without overflow, until it is doubled
  ScheduleConfig schedule = {};
};

struct CheckpointConfig {
  std::filesystem::path directory = {};  ///< empty: runs/<name of the job>
  std::uint64_t every_steps = 100;       ///< 0: only when the job ends
  std::uint32_t keep = 3;                ///< newest ones that stay
  std::string final_layout = "linear";   ///< of the result: "linear", or "gpt2" as GPT-2's files
};

/// Speed and comfort. Nothing here changes a single bit of the result.
struct OperationConfig {
  std::uint64_t bucket_bytes = std::uint64_t{1} << 20;  ///< gradients are reduced in such runs
  std::uint64_t log_every = 10;                         ///< steps between two lines of progress
  std::uint32_t prefetch = 2;                           ///< batches a loader is ahead
};

/// Which nodes a job runs on, while it runs.
struct ElasticConfig {
  std::uint32_t min_nodes = 1;      ///< with fewer it waits for more
  std::uint32_t max_nodes = 0;      ///< it uses no more; 0: as many as there are, up to its ranks
  std::uint64_t wait_seconds = 60;  ///< below min_nodes, before it stops with a checkpoint
  /// A node whose ranks take so many times as long as those of the others is reported, or dropped;
  /// 0: never.
  double straggler_factor = 2;
  double drop_straggler_factor = 0;
};

/// Everything that a job is. The result is a function of `model`, `data` (of both the files'
/// content, not their names), `optimizer`, `ranks`, `epochs`, `seed`, `threads_per_rank`,
/// `max_cpu_isa`, `device` and `precision`; the rest changes only speed and where things are
/// written.
///
/// Threads: a value type.
struct JobConfig {
  std::string name = "job";
  std::uint32_t ranks = 0;
  std::uint64_t epochs = 1;
  std::uint64_t seed = 1;
  std::uint32_t threads_per_rank = 1;
  std::string max_cpu_isa = "native";  ///< oneDNN uses no more: "native", "sse41", ...
  std::string precision = "f32";       ///< products are taken in: "f32", "bf16", "f16"
  std::string device = "cpu";          ///< what ranks compute on: "cpu", "cuda", "simulated"

  ModelConfig model;
  DataConfig data;
  OptimizerConfig optimizer;
  CheckpointConfig checkpoint;
  OperationConfig operation;
  ElasticConfig elastic;

  std::uint64_t batch_per_rank() const { return ranks == 0 ? 0 : data.batch / ranks; }

  /// Whether every value is in range and they fit each other. `invalid_argument` otherwise, with
  /// the first thing that is wrong.
  Status validate() const;

  /// Whether the job can run with `most` nodes at most (0: any number). Error: `invalid_argument`.
  Status check_nodes(std::uint64_t most) const;

  /// Every key in a fixed order; parse_job() gives back the same configuration.
  std::string to_toml() const;

  /// 64 hex digits (SHA-256) over what changes the result: two jobs with the same hash and the same
  /// data end in the same weights, and one may go on from the other's checkpoint.
  std::string results_hash() const;
  /// What that is over, for people: a line `job.ranks = 8` for each key.
  std::string results_text() const;
};

struct ParseOptions {
  /// What errors call the text.
  std::string source = "job";
  /// Relative paths of data are taken from here; empty: they are left as they are.
  std::filesystem::path folder = {};
  /// Relative paths of checkpoints, and of overrides, are taken from here; empty: left.
  std::filesystem::path working_folder = {};
};

/// Reads a job from TOML and applies `overrides` ("optimizer.lr=0.1", later ones win; strings with
/// or without quotes). The result is valid.
/// Errors: `invalid_argument`, as one sentence with file, line and column, key, value and remedy.
Result<JobConfig> parse_job(std::string_view text, const ParseOptions& options = {},
                            const std::vector<std::string>& overrides = {});

/// The same from a file. Its data paths become absolute, relative to the file's folder; checkpoints
/// and the paths of overrides are relative to the working folder, as on a command line.
/// Errors: those of parse_job, `not_found` and `io_error` for the file.
Result<JobConfig> load_job(const std::filesystem::path& path,
                           const std::vector<std::string>& overrides = {});

}  // namespace troupe::train
