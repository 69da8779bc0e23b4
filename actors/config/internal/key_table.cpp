#include "actors/config/internal/key_table.hpp"

#include <array>

namespace troupe::train::internal {
namespace {

using U32 = Access<std::uint32_t>;
using U64 = Access<std::uint64_t>;
using Number = Access<double>;
using Boolean = Access<bool>;
using Text = Access<std::string>;
using Path = Access<std::filesystem::path>;
using Integers = Access<std::vector<std::uint32_t>>;
using Numbers = Access<std::vector<double>>;
using Texts = Access<std::vector<std::string>>;

constexpr std::array<std::string_view, 11> kModels = {
    "lenet5", "mlp",      "resnet18", "resnet34", "resnet50", "resnet101",
    "vgg16",  "vgg16_bn", "gpt",      "lstm",     "lstm_lm"};
constexpr std::array<std::string_view, 5> kInstructionSets = {"native", "sse41", "avx", "avx2",
                                                              "avx512_core"};
constexpr std::array<std::string_view, 3> kDevices = {"cpu", "cuda", "simulated"};
constexpr std::array<std::string_view, 3> kPrecisions = {"f32", "bf16", "f16"};
constexpr std::array<std::string_view, 2> kLayouts = {"linear", "gpt2"};
constexpr std::array<std::string_view, 2> kNonFinite = {"stop", "skip"};
constexpr std::array<std::string_view, 7> kFormats = {"idx",    "cifar10", "cifar100", "images",
                                                      "tokens", "text",    "tar"};
constexpr std::array<std::string_view, 2> kTokenTypes = {"u16", "i32"};
constexpr std::array<std::string_view, 2> kAugments = {"none", "crop_flip"};
constexpr std::array<std::string_view, 2> kBadSamples = {"stop", "skip"};
constexpr std::array<std::string_view, 5> kOptimizers = {"sgd", "adam", "adamw", "lamb", "lars"};
constexpr std::array<std::string_view, 5> kSchedules = {"constant", "step", "cosine", "linear",
                                                        "one_cycle"};

#define TROUPE_FIELD(Type, member) Type([](JobConfig & config) -> auto& { return config.member; })

const Key kKeys[] = {
    {.name = "job.name", .field = TROUPE_FIELD(Text, name), .part = Part::operation},
    {.name = "job.ranks",
     .field = TROUPE_FIELD(U32, ranks),
     .required = true,
     .least = 1,
     .most = 65536},
    {.name = "job.epochs", .field = TROUPE_FIELD(U64, epochs), .least = 1, .most = 1000000},
    {.name = "job.seed", .field = TROUPE_FIELD(U64, seed)},
    {.name = "job.threads_per_rank",
     .field = TROUPE_FIELD(U32, threads_per_rank),
     .least = 1,
     .most = 1024},
    {.name = "job.max_cpu_isa",
     .field = TROUPE_FIELD(Text, max_cpu_isa),
     .choices = kInstructionSets},
    {.name = "job.precision", .field = TROUPE_FIELD(Text, precision), .choices = kPrecisions},
    {.name = "job.device", .field = TROUPE_FIELD(Text, device), .choices = kDevices},

    {.name = "model.name",
     .field = TROUPE_FIELD(Text, model.name),
     .required = true,
     .choices = kModels},
    {.name = "model.hidden",
     .field = TROUPE_FIELD(Integers, model.hidden),
     .least = 1,
     .most = 1u << 20},
    {.name = "model.classes",
     .field = TROUPE_FIELD(U32, model.classes),
     .least = 2,
     .most = 1u << 20},
    {.name = "model.small_images", .field = TROUPE_FIELD(Boolean, model.small_images)},
    {.name = "model.width", .field = TROUPE_FIELD(U32, model.width), .most = 1u << 16},
    {.name = "model.synchronized_batch_norm",
     .field = TROUPE_FIELD(Boolean, model.synchronized_batch_norm)},
    {.name = "model.layers", .field = TROUPE_FIELD(U32, model.layers), .most = 1024},
    {.name = "model.heads", .field = TROUPE_FIELD(U32, model.heads), .most = 1024},
    {.name = "model.dropout",
     .field = TROUPE_FIELD(Number, model.dropout),
     .high = 1,
     .below_high = true},
    {.name = "model.label_smoothing",
     .field = TROUPE_FIELD(Number, model.label_smoothing),
     .high = 1,
     .below_high = true},
    {.name = "model.weights",
     .field = TROUPE_FIELD(Path, model.weights),
     .part = Part::operation,
     .base = Base::job_folder},
    {.name = "model.fresh", .field = TROUPE_FIELD(Texts, model.fresh)},

    {.name = "data.format", .field = TROUPE_FIELD(Text, data.format), .choices = kFormats},
    {.name = "data.directory",
     .field = TROUPE_FIELD(Path, data.directory),
     .part = Part::operation,
     .base = Base::job_folder},
    {.name = "data.train",
     .field = TROUPE_FIELD(Path, data.train),
     .part = Part::operation,
     .base = Base::data_directory},
    {.name = "data.test",
     .field = TROUPE_FIELD(Path, data.test),
     .part = Part::operation,
     .base = Base::data_directory},
    {.name = "data.train_images",
     .field = TROUPE_FIELD(Path, data.train_images),
     .part = Part::operation,
     .base = Base::data_directory},
    {.name = "data.train_labels",
     .field = TROUPE_FIELD(Path, data.train_labels),
     .part = Part::operation,
     .base = Base::data_directory},
    {.name = "data.test_images",
     .field = TROUPE_FIELD(Path, data.test_images),
     .part = Part::operation,
     .base = Base::data_directory},
    {.name = "data.test_labels",
     .field = TROUPE_FIELD(Path, data.test_labels),
     .part = Part::operation,
     .base = Base::data_directory},
    {.name = "data.batch",
     .field = TROUPE_FIELD(U64, data.batch),
     .required = true,
     .least = 1,
     .most = std::uint64_t{1} << 31},
    {.name = "data.drop_last", .field = TROUPE_FIELD(Boolean, data.drop_last)},
    {.name = "data.image_size", .field = TROUPE_FIELD(U32, data.image_size), .most = 2048},
    {.name = "data.tokens", .field = TROUPE_FIELD(U32, data.tokens), .most = 1u << 20},
    {.name = "data.token_type",
     .field = TROUPE_FIELD(Text, data.token_type),
     .choices = kTokenTypes},
    {.name = "data.augment", .field = TROUPE_FIELD(Text, data.augment), .choices = kAugments},
    {.name = "data.bad_samples",
     .field = TROUPE_FIELD(Text, data.bad_samples),
     .choices = kBadSamples},
    {.name = "data.mean", .field = TROUPE_FIELD(Numbers, data.mean), .low = -1e6, .high = 1e6},
    {.name = "data.std", .field = TROUPE_FIELD(Numbers, data.std), .low = 1e-6, .high = 1e6},

    {.name = "optimizer.name", .field = TROUPE_FIELD(Text, optimizer.name), .choices = kOptimizers},
    {.name = "optimizer.lr",
     .field = TROUPE_FIELD(Number, optimizer.lr),
     .above_low = true,
     .high = 1e6},
    {.name = "optimizer.momentum",
     .field = TROUPE_FIELD(Number, optimizer.momentum),
     .high = 1,
     .below_high = true},
    {.name = "optimizer.weight_decay",
     .field = TROUPE_FIELD(Number, optimizer.weight_decay),
     .high = 1e3},
    {.name = "optimizer.nesterov", .field = TROUPE_FIELD(Boolean, optimizer.nesterov)},
    {.name = "optimizer.beta1",
     .field = TROUPE_FIELD(Number, optimizer.beta1),
     .high = 1,
     .below_high = true},
    {.name = "optimizer.beta2",
     .field = TROUPE_FIELD(Number, optimizer.beta2),
     .high = 1,
     .below_high = true},
    {.name = "optimizer.epsilon",
     .field = TROUPE_FIELD(Number, optimizer.epsilon),
     .low = 1e-30,
     .high = 1e3},
    {.name = "optimizer.trust_coefficient",
     .field = TROUPE_FIELD(Number, optimizer.trust_coefficient),
     .above_low = true,
     .high = 1e3},
    {.name = "optimizer.decay_vectors", .field = TROUPE_FIELD(Boolean, optimizer.decay_vectors)},
    {.name = "optimizer.clip_norm", .field = TROUPE_FIELD(Number, optimizer.clip_norm)},
    {.name = "optimizer.non_finite",
     .field = TROUPE_FIELD(Text, optimizer.non_finite),
     .choices = kNonFinite},
    {.name = "optimizer.loss_scale",
     .field = TROUPE_FIELD(Number, optimizer.loss_scale),
     .high = 0x1p127},
    {.name = "optimizer.loss_scale_steps",
     .field = TROUPE_FIELD(U64, optimizer.loss_scale_steps),
     .least = 1},
    {.name = "optimizer.schedule.kind",
     .field = TROUPE_FIELD(Text, optimizer.schedule.kind),
     .choices = kSchedules},
    {.name = "optimizer.schedule.warmup_steps",
     .field = TROUPE_FIELD(U64, optimizer.schedule.warmup_steps)},
    {.name = "optimizer.schedule.step_epochs",
     .field = TROUPE_FIELD(U64, optimizer.schedule.step_epochs),
     .least = 1},
    {.name = "optimizer.schedule.gamma",
     .field = TROUPE_FIELD(Number, optimizer.schedule.gamma),
     .above_low = true,
     .high = 1e3},
    {.name = "optimizer.schedule.final_lr",
     .field = TROUPE_FIELD(Number, optimizer.schedule.final_lr),
     .high = 1e6},
    {.name = "optimizer.schedule.pct_start",
     .field = TROUPE_FIELD(Number, optimizer.schedule.pct_start),
     .high = 1},
    {.name = "optimizer.schedule.div_factor",
     .field = TROUPE_FIELD(Number, optimizer.schedule.div_factor),
     .low = 1},
    {.name = "optimizer.schedule.final_div_factor",
     .field = TROUPE_FIELD(Number, optimizer.schedule.final_div_factor),
     .low = 1},

    {.name = "checkpoint.directory",
     .field = TROUPE_FIELD(Path, checkpoint.directory),
     .part = Part::operation,
     .base = Base::working_folder},
    {.name = "checkpoint.every_steps",
     .field = TROUPE_FIELD(U64, checkpoint.every_steps),
     .part = Part::operation},
    {.name = "checkpoint.keep",
     .field = TROUPE_FIELD(U32, checkpoint.keep),
     .part = Part::operation,
     .least = 1,
     .most = 100000},
    {.name = "checkpoint.final_layout",
     .field = TROUPE_FIELD(Text, checkpoint.final_layout),
     .part = Part::operation,
     .choices = kLayouts},

    {.name = "operation.bucket_bytes",
     .field = TROUPE_FIELD(U64, operation.bucket_bytes),
     .part = Part::operation,
     .least = 4096,
     .most = std::uint64_t{1} << 30},
    {.name = "operation.log_every",
     .field = TROUPE_FIELD(U64, operation.log_every),
     .part = Part::operation,
     .least = 1},
    {.name = "operation.prefetch",
     .field = TROUPE_FIELD(U32, operation.prefetch),
     .part = Part::operation,
     .most = 1024},

    {.name = "elastic.min_nodes",
     .field = TROUPE_FIELD(U32, elastic.min_nodes),
     .part = Part::operation,
     .least = 1,
     .most = 65536},
    {.name = "elastic.max_nodes",
     .field = TROUPE_FIELD(U32, elastic.max_nodes),
     .part = Part::operation,
     .most = 65536},
    {.name = "elastic.wait_seconds",
     .field = TROUPE_FIELD(U64, elastic.wait_seconds),
     .part = Part::operation,
     .most = 86400},
    {.name = "elastic.straggler_factor",
     .field = TROUPE_FIELD(Number, elastic.straggler_factor),
     .part = Part::operation,
     .high = 1e6},
    {.name = "elastic.drop_straggler_factor",
     .field = TROUPE_FIELD(Number, elastic.drop_straggler_factor),
     .part = Part::operation,
     .high = 1e6},
};

#undef TROUPE_FIELD

}  // namespace

std::span<const Key> keys() {
  return kKeys;
}

const Key* find_key(std::string_view name) {
  for (const Key& key : kKeys)
    if (key.name == name) return &key;
  return nullptr;
}

std::string_view type_name(const Key& key) {
  static constexpr std::string_view kNames[] = {"integer",  "integer", "number",
                                                "boolean",  "string",  "path",
                                                "integers", "numbers", "strings"};
  return kNames[key.field.index()];
}

}  // namespace troupe::train::internal
