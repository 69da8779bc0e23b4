// A layer of one's own: the squeeze-and-excitation gate of Hu, Shen and Sun (2017), with the hard
// sigmoid of MobileNetV3. Its gradients are checked, and a small network with it is trained on
// handwritten digits by four ranks, all on one thread and then on four: the weights end the same.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "actors/data/idx.hpp"
#include "kernels/custom_layer.hpp"
#include "kernels/model.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/vector_ops.hpp"
#include "kernels/workspace.hpp"

namespace {

using namespace troupe;
using namespace troupe::kernels;

/// y[c] = x[c] gate[c] on [channels, height, width], with m[c] the mean of channel c and
///
///     gate = hard_sigmoid(expand relu(squeeze m)),   hard_sigmoid(z) = min(max(z / 6 + 1/2, 0), 1)
///
/// Parameters: `squeeze` [reduced, channels] and `expand` [channels, reduced].
class SqueezeExcitation final : public CustomLayer {
public:
  explicit SqueezeExcitation(std::int64_t reduced) : reduced_(reduced) {}

  Result<Shape> output_shape(std::span<const Shape> inputs) const override {
    if (inputs.size() != 1 || inputs[0].rank() != 3)
      return Error{Code::shape_mismatch, "needs one input [channels, height, width]"};
    return inputs[0];
  }

  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override {
    const std::int64_t channels = inputs[0][0];
    return {{"squeeze", Shape{reduced_, channels}, Initial::by_fan_in(channels)},
            {"expand", Shape{channels, reduced_}, Initial::by_fan_in(reduced_)}};
  }

  Status forward(const CustomForward& pass) const override {
    const Sizes n = sizes(pass.parameters[0].size(), pass.output.size(), pass.batch);
    for (std::size_t sample = 0; sample < n.batch; ++sample) {
      const auto x = pass.inputs[0].subspan(sample * n.sample(), n.sample());
      const Gates gates = gates_of(n, x, pass.parameters);
      for (std::size_t i = 0; i < x.size(); ++i)
        pass.output[sample * n.sample() + i] = x[i] * hard_sigmoid(gates.before[i / n.area]);
    }
    return {};
  }

  Status backward(const CustomBackward& pass) const override {
    const Sizes n = sizes(pass.parameters[0].size(), pass.output.size(), pass.batch);
    for (std::size_t sample = 0; sample < n.batch; ++sample) {
      const auto x = pass.inputs[0].subspan(sample * n.sample(), n.sample());
      const auto given = pass.output_gradient.subspan(sample * n.sample(), n.sample());
      const Gates gates = gates_of(n, x, pass.parameters);
      std::vector<float> to_gates(n.channels), to_squeezed(n.reduced), to_means(n.channels);
      for (std::size_t i = 0; i < x.size(); ++i) to_gates[i / n.area] += given[i] * x[i];
      for (std::size_t c = 0; c < n.channels; ++c) {
        const float z = gates.before[c];
        to_gates[c] = z > -3.0f && z < 3.0f ? to_gates[c] / 6.0f : 0.0f;
        for (std::size_t r = 0; r < n.reduced; ++r) {
          pass.parameter_gradients[1][c * n.reduced + r] += to_gates[c] * gates.squeezed[r];
          to_squeezed[r] += to_gates[c] * pass.parameters[1][c * n.reduced + r];
        }
      }
      for (std::size_t r = 0; r < n.reduced; ++r) {
        if (gates.squeezed[r] <= 0.0f) continue;
        for (std::size_t c = 0; c < n.channels; ++c) {
          pass.parameter_gradients[0][r * n.channels + c] += to_squeezed[r] * gates.means[c];
          to_means[c] += to_squeezed[r] * pass.parameters[0][r * n.channels + c];
        }
      }
      const auto to = pass.input_gradients[0];
      if (to.empty()) continue;
      for (std::size_t i = 0; i < x.size(); ++i)
        to[sample * n.sample() + i] = given[i] * hard_sigmoid(gates.before[i / n.area]) +
                                      to_means[i / n.area] / static_cast<float>(n.area);
    }
    return {};
  }

private:
  struct Sizes {
    std::size_t batch, channels, reduced, area;
    std::size_t sample() const { return channels * area; }
  };
  /// Of one sample; small enough to be computed twice, so that nothing is kept between the passes.
  struct Gates {
    std::vector<float> means, squeezed, before;
  };

  static float hard_sigmoid(float z) { return std::clamp(z / 6.0f + 0.5f, 0.0f, 1.0f); }

  Sizes sizes(std::size_t weights, std::size_t elements, std::int64_t batch) const {
    const auto reduced = static_cast<std::size_t>(reduced_);
    const auto samples = static_cast<std::size_t>(batch);
    const std::size_t channels = weights / reduced;
    return {samples, channels, reduced, elements / samples / channels};
  }

  static Gates gates_of(const Sizes& n, std::span<const float> x,
                        std::span<const std::span<const float>> parameters) {
    Gates gates{std::vector<float>(n.channels), std::vector<float>(n.reduced),
                std::vector<float>(n.channels)};
    for (std::size_t i = 0; i < x.size(); ++i) gates.means[i / n.area] += x[i];
    for (float& mean : gates.means) mean /= static_cast<float>(n.area);
    for (std::size_t r = 0; r < n.reduced; ++r) {
      for (std::size_t c = 0; c < n.channels; ++c)
        gates.squeezed[r] += parameters[0][r * n.channels + c] * gates.means[c];
      gates.squeezed[r] = std::max(gates.squeezed[r], 0.0f);
    }
    for (std::size_t c = 0; c < n.channels; ++c)
      for (std::size_t r = 0; r < n.reduced; ++r)
        gates.before[c] += parameters[1][c * n.reduced + r] * gates.squeezed[r];
    return gates;
  }

  const std::int64_t reduced_;
};

Result<Model> build_model() {
  const auto gate = std::make_shared<SqueezeExcitation>(4);
  return Model::build("gated", {1, 28, 28},
                      {Convolution{.name = "conv1", .out_channels = 8, .kernel = 5, .padding = 2},
                       Relu{}, Pooling{}, Custom{"gate1", gate},
                       Convolution{.name = "conv2", .out_channels = 16, .kernel = 5}, Relu{},
                       Pooling{}, Custom{"gate2", gate}, Flatten{}, Linear{"fc", 10}});
}

struct Digits {
  Tensor images, labels;
};

Result<Digits> read(const std::string& folder, const std::string& part) {
  TROUPE_ASSIGN(auto images, train::read_idx(folder + "/" + part + "-images-idx3-ubyte.gz"));
  TROUPE_ASSIGN(auto labels, train::read_idx(folder + "/" + part + "-labels-idx1-ubyte.gz"));
  const auto count = static_cast<std::int64_t>(labels.shape[0]);
  TROUPE_ASSIGN(auto pixels,
                Tensor::view(std::move(images.data), 0, DType::u8, Shape{count, 28, 28}));
  TROUPE_ASSIGN(auto classes, Tensor::view(std::move(labels.data), 0, DType::u8, Shape{count}));
  return Digits{std::move(pixels), std::move(classes)};
}

constexpr std::size_t kRanks = 4;
constexpr std::int64_t kBatchOfRank = 16;

/// One epoch; the ranks of a step side by side on so many threads.
Result<Parameters> train_on(const Digits& digits, const Model& model, std::size_t threads) {
  TROUPE_ASSIGN(Parameters parameters, Parameters::initialized(model, 1));
  TROUPE_ASSIGN(const auto sgd, make_optimizer({.momentum = 0.9}, model));
  TROUPE_ASSIGN(auto state, sgd->initial_state());
  std::vector<Workspace> workspaces;
  std::array<std::vector<float>, kRanks> gradients;
  std::array<Status, kRanks> results;
  for (auto& gradient : gradients) {
    TROUPE_ASSIGN(Workspace workspace, Workspace::create(model));
    workspaces.push_back(std::move(workspace));
    gradient.resize(model.flat_size());
  }
  constexpr auto kBatch = static_cast<std::int64_t>(kRanks) * kBatchOfRank;
  for (std::int64_t step = 0; (step + 1) * kBatch <= digits.labels.shape()[0]; ++step) {
    const auto run_rank = [&](std::size_t rank) -> Status {
      const std::int64_t first = step * kBatch + static_cast<std::int64_t>(rank) * kBatchOfRank;
      TROUPE_ASSIGN(const Tensor images, digits.images.rows(first, first + kBatchOfRank));
      TROUPE_ASSIGN(const Tensor labels, digits.labels.rows(first, first + kBatchOfRank));
      return workspaces[rank]
          .forward_backward(parameters, images, labels, gradients[rank])
          .status();
    };
    std::vector<std::thread> running;
    for (std::size_t thread = 0; thread < threads; ++thread)
      running.emplace_back([&, thread] {
        for (std::size_t rank = thread; rank < kRanks; rank += threads)
          results[rank] = run_rank(rank);
      });
    for (std::thread& thread : running) thread.join();
    for (const Status& result : results) TROUPE_TRY(result);
    // Along one tree, as a job's reducers do: (0 + 1) + (2 + 3).
    add_in_place(gradients[0], gradients[1]);
    add_in_place(gradients[2], gradients[3]);
    add_in_place(gradients[0], gradients[2]);
    sgd->update({static_cast<std::uint64_t>(step) + 1, 0.05, 1.0f / static_cast<float>(kBatch)},
                std::array{GradientRun{0, gradients[0]}}, parameters, state);
  }
  return parameters;
}

Status run(const std::string& folder) {
  // A layer of one's own has a test, too.
  TROUPE_TRY(check_custom_layer({"gate", std::make_shared<SqueezeExcitation>(3)}, {{5, 4, 3}}));
  std::printf("the gradients are right\n");
  TROUPE_ASSIGN(const Model model, build_model());
  TROUPE_ASSIGN(const Digits digits, read(folder, "train"));
  TROUPE_ASSIGN(const Parameters one, train_on(digits, model, 1));
  TROUPE_ASSIGN(const Parameters four, train_on(digits, model, kRanks));
  TROUPE_ASSIGN(const Digits unseen, read(folder, "t10k"));
  TROUPE_ASSIGN(Workspace workspace, Workspace::create(model));
  TROUPE_ASSIGN(const LossStats stats, workspace.evaluate(one, unseen.images, unseen.labels));
  const double right = static_cast<double>(stats.correct) / static_cast<double>(stats.count);
  std::printf("of digits it has not seen, %.1f%% are right\n", 100.0 * right);
  if (right < 0.9) return {Code::internal, "a network like this gets nine of ten right"};
  if (std::memcmp(one.values().data(), four.values().data(), one.values().size_bytes()) != 0)
    return {Code::internal, "other threads ended in other weights"};
  std::printf("one thread and four end in the same weights\n");
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  const Status status = run(count > 1 ? arguments[1] : "examples/mnist/data");
  if (!status.ok())
    std::fprintf(stderr, "custom_layer_example: %s\n", to_string(status.error()).c_str());
  return status.ok() ? 0 : 1;
}
