// What a model makes of samples: reads a job file for the model, a file of weights and one of
// samples, writes the logits, and prints the likeliest class of each sample.
//
//   predict JOB.toml SAMPLES.safetensors LOGITS.safetensors [--weights FILE]
//
// The weights are those that the job ended with, or any of PyTorch's (docs/weights.md). SAMPLES has
// a tensor "inputs", or only one tensor: images [n, channels, height, width], as U8 (the job's mean
// and std apply) or as F32 (taken as they are), or token ids [n, tokens], as I32 or I64. LOGITS
// gets "logits" [n, classes] or [n, tokens, classes].
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "actors/checkpoint/safetensors.hpp"
#include "actors/config/job_config.hpp"
#include "actors/train/model_factory.hpp"
#include "actors/train/weights.hpp"
#include "kernels/workspace.hpp"

namespace {

using namespace troupe;  // NOLINT: a program of its own
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;

struct Options {
  std::string job, samples, logits, weights;
  std::vector<std::string> overrides;
};

/// Samples that go through the model at a time.
constexpr std::int64_t kBatch = 16;
/// Lines that are printed.
constexpr std::int64_t kPrinted = 10;

Error wrong(std::string what) {
  return {Code::invalid_argument, std::move(what)};
}

/// The ids, as the model takes them; it looks at their range itself.
Result<Tensor> narrowed(const train::TensorView& ids, const Shape& shape) {
  TROUPE_ASSIGN(Tensor tensor, Tensor::allocate(DType::i32, shape));
  for (std::size_t i = 0; i < tensor.elements(); ++i) {
    std::int64_t id = 0;
    std::memcpy(&id, ids.bytes.data() + i * sizeof id, sizeof id);
    if (id < 0 || id > INT32_MAX)
      return wrong(fmt::format("'{}' has the token {}; ids are 0 and above", ids.name, id));
    tensor.data<std::int32_t>()[i] = static_cast<std::int32_t>(id);
  }
  return tensor;
}

Result<Tensor> read_samples(const train::TensorFile& file, const std::string& name) {
  const train::TensorView* view = file.find("inputs");
  if (view == nullptr && file.tensors.size() == 1) view = &file.tensors.front();
  if (view == nullptr) return wrong(fmt::format("{}: no tensor is called 'inputs'", name));
  std::vector<std::int64_t> dims;
  for (const auto size : view->shape)
    dims.push_back(static_cast<std::int64_t>(std::min<std::uint64_t>(size, INT64_MAX)));
  TROUPE_ASSIGN(const Shape shape, Shape::checked(dims));
  const bool images = shape.rank() == 4 && (view->dtype == "U8" || view->dtype == "F32");
  const bool ids = shape.rank() == 2 && (view->dtype == "I32" || view->dtype == "I64");
  if (!(images || ids) || shape.elements() == 0)
    return wrong(
        fmt::format("{}: tensor '{}' is {} {}; images are U8 or F32 [n, channels, height, "
                    "width], token ids I32 or I64 [n, tokens]",
                    name, view->name, view->dtype, kernels::to_string(shape)));
  if (view->dtype == "I64") return narrowed(*view, shape);
  const DType dtype = ids ? DType::i32 : view->dtype == "U8" ? DType::u8 : DType::f32;
  TROUPE_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape));
  std::ranges::copy(view->bytes, tensor.bytes().begin());
  return tensor;
}

/// As if a data set had samples like these.
train::SampleLayout layout_of(const Tensor& samples) {
  const Shape input = samples.shape().without_first();
  const bool ids = samples.dtype() == DType::i32;
  return {.dtype = samples.dtype(), .input = input, .labels = ids ? input : Shape{}};
}

Result<Tensor> predict(kernels::Workspace& workspace, const kernels::Parameters& parameters,
                       const Tensor& samples) {
  const std::int64_t count = samples.shape()[0];
  TROUPE_ASSIGN(Tensor logits,
                Tensor::allocate(DType::f32, workspace.model().output().with_first(count)));
  auto at = logits.bytes().begin();
  for (std::int64_t begin = 0; begin < count; begin += kBatch) {
    TROUPE_ASSIGN(const Tensor some, samples.rows(begin, std::min(begin + kBatch, count)));
    TROUPE_ASSIGN(const Tensor part, workspace.predict(parameters, some));
    at = std::ranges::copy(part.bytes(), at).out;
  }
  return logits;
}

/// Of tokens, what comes after the last one.
void print(const Tensor& logits) {
  const auto classes = static_cast<std::size_t>(logits.shape()[logits.shape().rank() - 1]);
  const std::size_t each = logits.elements() / static_cast<std::size_t>(logits.shape()[0]);
  for (std::int64_t i = 0; i < std::min(logits.shape()[0], kPrinted); ++i) {
    const auto end = (static_cast<std::size_t>(i) + 1) * each;
    const auto row = logits.data<float>().subspan(end - classes, classes);
    const auto best = std::ranges::max_element(row);
    fmt::print("sample {}: {} ({:.4f})\n", i, best - row.begin(), *best);
  }
}

Status run(const Options& options) {
  train::PosixFileSystem files;
  TROUPE_ASSIGN(const train::JobConfig job, train::load_job(options.job, options.overrides));
  TROUPE_ASSIGN(const train::TensorFile file,
                train::read_safetensors(files, options.samples, train::Checksum::if_present));
  TROUPE_ASSIGN(const Tensor samples, read_samples(file, options.samples));
  TROUPE_ASSIGN(const kernels::Model model, train::make_model(job, layout_of(samples)));
  TROUPE_ASSIGN(auto parameters, kernels::Parameters::zeros(model));
  const std::filesystem::path weights = options.weights.empty()
                                            ? job.checkpoint.directory / "final.safetensors"
                                            : std::filesystem::path(options.weights);
  TROUPE_TRY(train::load_weights(files, weights, parameters));
  TROUPE_ASSIGN(auto device, train::open_device(job));
  TROUPE_ASSIGN(auto workspace, kernels::Workspace::create(
                                    model, train::workspace_options(job, std::move(device))));
  TROUPE_ASSIGN(const Tensor logits, predict(workspace, parameters, samples));
  print(logits);
  const auto dims = logits.shape().dims();
  TROUPE_TRY(train::write_safetensors(
      files, options.logits,
      {{.name = "logits", .shape = {dims.begin(), dims.end()}, .bytes = logits.bytes()}}, {}));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What a model makes of samples");
  app.add_option("job", options.job, "job file, for the model")->required();
  app.add_option("samples", options.samples, "safetensors with the tensor 'inputs'")->required();
  app.add_option("logits", options.logits, "safetensors to write")->required();
  app.add_option("--weights", options.weights, "default: what the job ended with");
  app.add_option("--set", options.overrides, "KEY=VALUE over the job file's");
  CLI11_PARSE(app, argc, argv);
  const Status status = run(options);
  if (status.ok()) return 0;
  fmt::print(stderr, "predict: {}\n", to_string(status.error()));
  return 1;
}
