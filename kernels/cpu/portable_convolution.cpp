#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/cpu/internal/parallel.hpp"
#include "kernels/cpu/internal/portable.hpp"

namespace troupe::kernels::cpu {

namespace {

/// Weights [out][in][k][k] as correlate_row wants them: [block][in][k][k][channels of the block].
void pack(const Correlation& shape, const float* weights, float* packed) {
  const Index taps = shape.x.channels * shape.kernel * shape.kernel;
  for (Index block = 0; block < shape.blocks(); ++block) {
    const Index begin = shape.block_begin(block);
    const Index end = shape.block_begin(block + 1);
    for (Index tap = 0; tap < taps; ++tap)
      for (Index o = begin; o < end; ++o) *packed++ = weights[o * taps + tap];
  }
}

/// The same for the way back, which correlates the output's gradient with the weights turned by
/// half a circle, from output channels to input channels.
void pack_turned(const Correlation& shape, const float* weights, float* packed) {
  const Index area = shape.kernel * shape.kernel;
  for (Index block = 0; block < shape.blocks(); ++block) {
    const Index begin = shape.block_begin(block);
    const Index end = shape.block_begin(block + 1);
    for (Index o = 0; o < shape.x.channels; ++o)
      for (Index tap = 0; tap < area; ++tap)
        for (Index i = begin; i < end; ++i)
          *packed++ = weights[(o * shape.out_channels + i) * area + (area - 1 - tap)];
  }
}

LaneImage image_of(const Shape& shape) {
  return {shape[0], shape[1], shape[2], 0, shape[2]};
}

/// With zero columns on both sides.
LaneImage widened(LaneImage image, Index columns) {
  image.left = columns;
  image.row = image.width + 2 * columns;
  return image;
}

/// Copies images without zero columns into the middle of ones with them.
void copy_rows(const LaneImage& from, const float* source, const LaneImage& to, float* target) {
  for (Index row = 0; row < from.channels * from.height; ++row)
    std::memcpy(target + row * to.row_floats() + to.left * 8, source + row * from.row_floats(),
                static_cast<std::size_t>(from.row_floats()) * sizeof(float));
}

/// A convolution, alone or with the ReLU and the max pooling (windows side by side) that follow it,
/// on interleaved samples. A group of eight goes through all of it while it is in the cache.
///
/// Threads share the groups, and for the weights' gradient the output channels, so each sum is one
/// thread's: the bits are those of one thread.
class PortableConvolution final : public LayerKernel {
public:
  static MadeKernel make(const KernelRequest& request) {
    auto kernel = std::make_unique<PortableConvolution>(request);
    TROUPE_TRY(kernel->allocate());
    return MadeKernel(std::move(kernel));
  }

  explicit PortableConvolution(const KernelRequest& request) {
    const Layer& layer = request.layers.front();
    const auto& spec = std::get<Convolution>(layer.spec);
    if (request.layers.size() > 1) pool_ = std::get<Pooling>(request.layers.back().spec).kernel;
    threads_ = request.threads;
    weight_offset_ = request.offset_of(0);
    bias_offset_ = request.offset_of(1);
    inputs_ = {interleaved_activation(request.input().shape)};
    output_ = interleaved_activation(request.output_shape());
    groups_ = groups_of(output_);
    in_ = image_of(layer.input());
    conv_ = image_of(layer.output);
    out_ = image_of(request.layers.back().output);
    forward_ = {in_,         conv_.channels, conv_.height, conv_.width,
                spec.kernel, spec.stride,    spec.padding};
    forward_.x = widened(in_, forward_.columns_needed());
    want_input_gradient_ = request.input_gradient();

    // The way back is of stride 1, on an output gradient with zeros between the strides.
    stride_ = spec.stride;
    LaneImage gradient{conv_.channels, (conv_.height - 1) * stride_ + 1,
                       (conv_.width - 1) * stride_ + 1, 0, 0};
    backward_ = {gradient,
                 in_.channels,
                 in_.height,
                 in_.width,
                 spec.kernel,
                 1,
                 spec.kernel - 1 - spec.padding};
    backward_.x = widened(gradient, want_input_gradient_ ? backward_.columns_needed() : 0);
    weights_ = forward_;
    weights_.stride = 1;
  }

  KernelTraits traits() const noexcept override { return {.backward_reads_output = false}; }

  Status forward(const ForwardPass& pass) override {
    pack(forward_, pass.parameters + weight_offset_, packed_.data());
    each_group([&](Index group, Part& part) {
      forward_group(part, padded_input(part, pass.input(), group), pass.parameters + bias_offset_,
                    pass.output + group * out_.floats(), chosen(group));
    });
    return {};
  }

  Status backward(const BackwardPass& pass) override {
    sums_.clear();
    bias_sums_.clear();
    if (pass.input_gradient() != nullptr)
      pack_turned(backward_, pass.parameters + weight_offset_, packed_turned_.data());
    if (parts_.size() == 1) {
      // Both gradients of a group while the one that they come from is in the cache.
      for (Index group = 0; group < groups_; ++group) {
        weights_gradient(parts_[0], pass, group, 0, conv_.channels);
        if (pass.input_gradient() != nullptr) input_gradient(parts_[0], pass, group);
      }
    } else {
      each_channels([&](Index begin, Index end, Part& part) {
        for (Index group = 0; group < groups_; ++group)
          weights_gradient(part, pass, group, begin, end);
      });
      if (pass.input_gradient() != nullptr)
        each_group([&](Index group, Part& part) {
          output_gradient(part, pass, group, 0, conv_.channels);
          input_gradient(part, pass, group);
        });
    }
    for (Index i = 0; i < sums_.size() / 8; ++i)
      pass.gradients[weight_offset_ + static_cast<std::size_t>(i)] =
          sum_of_lanes(sums_.data() + i * 8);
    for (Index o = 0; o < conv_.channels; ++o)
      pass.gradients[bias_offset_ + static_cast<std::size_t>(o)] =
          sum_of_lanes(bias_sums_.data() + o * 8);
    return {};
  }

private:
  /// What a thread works in.
  struct Part {
    Scratch padded, tile;
    Scratch gradient;  ///< of the convolution's output, as backward_.x has it
    Scratch unpooled;  ///< the same without zeros between the strides
  };

  template <class Body>
  void each_group(const Body& body) {
    parallel_each(static_cast<int>(parts_.size()), static_cast<std::size_t>(groups_),
                  [&](std::size_t group, std::size_t part) {
                    body(static_cast<Index>(group), parts_[part]);
                  });
  }
  /// Calls body(begin, end, part) for a run of the output channels on each thread.
  template <class Body>
  void each_channels(const Body& body) {
    const auto runs = static_cast<Index>(parts_.size());
    parallel_each(static_cast<int>(runs), parts_.size(), [&](std::size_t n, std::size_t part) {
      const Index run = static_cast<Index>(n);
      const Index begin = run * conv_.channels / runs, end = (run + 1) * conv_.channels / runs;
      if (begin < end) body(begin, end, parts_[part]);
    });
  }
  std::uint8_t* chosen(Index group) {
    return chosen_.data() + (pool_ > 0 ? group * out_.floats() : 0);
  }

  Status allocate() {
    const Index weights = conv_.channels * in_.channels * forward_.kernel * forward_.kernel;
    TROUPE_ASSIGN(packed_, Scratch::zeros(weights));
    TROUPE_ASSIGN(packed_turned_, Scratch::zeros(want_input_gradient_ ? weights : 0));
    parts_.resize(static_cast<std::size_t>(
        std::clamp<Index>(threads_, 1, std::max(groups_, conv_.channels))));
    for (Part& part : parts_) {
      TROUPE_ASSIGN(part.padded, Scratch::zeros(forward_.x.left > 0 ? forward_.x.floats() : 0));
      TROUPE_ASSIGN(part.tile, Scratch::zeros(pool_ * Correlation::kMaxChannels * conv_.width * 8));
      TROUPE_ASSIGN(part.gradient, Scratch::zeros(backward_.x.floats()));
      if (pool_ > 0 && stride_ > 1) {
        TROUPE_ASSIGN(part.unpooled, Scratch::zeros(conv_.floats()));
      }
    }
    TROUPE_ASSIGN(sums_, Scratch::zeros(weights * 8));
    TROUPE_ASSIGN(bias_sums_, Scratch::zeros(conv_.channels * 8));
    if (pool_ > 0) chosen_.resize(output_.floats);
    return {};
  }

  /// The group's input with the zero columns that the windows reach into.
  const float* padded_input(Part& part, const float* input, Index group) const {
    const float* const own = input + group * in_.floats();
    if (forward_.x.left == 0) return own;
    copy_rows(in_, own, forward_.x, part.padded.data());
    return part.padded.data();
  }

  void forward_group(Part& part, const float* x, const float* bias, float* y,
                     std::uint8_t* chosen) const {
    for (Index block = 0; block < forward_.blocks(); ++block) {
      const Index begin = forward_.block_begin(block);
      const Index channels = forward_.block_begin(block + 1) - begin;
      const float* const weights =
          packed_.data() + begin * in_.channels * forward_.kernel * forward_.kernel;
      const auto row = [&](Index r, float* to, Index channel_floats) {
        loops_.correlate_row(forward_, block, r, x, weights, bias + begin, to, channel_floats);
      };
      if (pool_ == 0) {
        for (Index r = 0; r < conv_.height; ++r)
          row(r, y + begin * conv_.channel_floats() + r * conv_.row_floats(),
              conv_.channel_floats());
        continue;
      }
      // Only the rows of one pooled row are kept at a time.
      const Index tile_channel = pool_ * conv_.row_floats();
      for (Index p = 0; p < out_.height; ++p) {
        for (Index r = 0; r < pool_; ++r)
          row(p * pool_ + r, part.tile.data() + r * conv_.row_floats(), tile_channel);
        for (Index o = 0; o < channels; ++o) {
          const Index at = (begin + o) * out_.channel_floats() + p * out_.row_floats();
          loops_.relu_pool_rows(part.tile.data() + o * tile_channel, conv_.width, pool_, out_.width,
                                y + at, chosen + at);
        }
      }
    }
  }

  /// Of the convolution's output, for its channels [begin, end), into the part's `gradient`.
  void output_gradient(Part& part, const BackwardPass& pass, Index group, Index begin, Index end) {
    const float* const dy = pass.output_gradient + group * out_.floats();
    if (pool_ == 0) {
      spread(dy, begin, end, part.gradient.data());
    } else if (stride_ > 1) {
      // Rare enough: side by side first, then apart.
      unpool(dy, chosen(group), begin, end, conv_, part.unpooled.data());
      spread(part.unpooled.data(), begin, end, part.gradient.data());
    } else {
      unpool(dy, chosen(group), begin, end, backward_.x, part.gradient.data());
    }
  }

  void unpool(const float* dy, const std::uint8_t* chosen, Index begin, Index end,
              const LaneImage& to, float* target) const {
    for (Index o = begin; o < end; ++o)
      for (Index p = 0; p < out_.height; ++p) {
        const Index at = o * out_.channel_floats() + p * out_.row_floats();
        loops_.relu_unpool_rows(
            dy + at, chosen + at, conv_.width, pool_, out_.width,
            target + o * to.channel_floats() + p * pool_ * to.row_floats() + to.left * 8,
            to.row_floats());
      }
  }

  /// Copies a gradient of the convolution's output to every stride-th place of `target`.
  void spread(const float* dy, Index begin, Index end, float* target) const {
    const LaneImage& to = backward_.x;
    dy += begin * conv_.channel_floats();
    for (Index o = begin; o < end; ++o)
      for (Index r = 0; r < conv_.height; ++r)
        for (Index c = 0; c < conv_.width; ++c, dy += 8)
          std::memcpy(target + o * to.channel_floats() + r * stride_ * to.row_floats() +
                          (to.left + c * stride_) * 8,
                      dy, 8 * sizeof(float));
  }

  /// Adds the group's to the sums of the output channels [begin, end), whose output_gradient() is
  /// made for that.
  void weights_gradient(Part& part, const BackwardPass& pass, Index group, Index begin, Index end) {
    output_gradient(part, pass, group, begin, end);
    Correlation channels = weights_;
    channels.out_channels = end - begin;
    const Index taps = in_.channels * weights_.kernel * weights_.kernel;
    loops_.correlate_weights(channels, backward_.x, padded_input(part, pass.input(), group),
                             part.gradient.data() + begin * backward_.x.channel_floats(),
                             sums_.data() + begin * taps * 8, bias_sums_.data() + begin * 8);
  }

  /// From the part's `gradient`.
  void input_gradient(Part& part, const BackwardPass& pass, Index group) const {
    float* const dx = pass.input_gradient() + group * in_.floats();
    for (Index block = 0; block < backward_.blocks(); ++block) {
      const Index begin = backward_.block_begin(block);
      const float* const weights =
          packed_turned_.data() + begin * conv_.channels * backward_.kernel * backward_.kernel;
      for (Index r = 0; r < in_.height; ++r)
        loops_.correlate_row(backward_, block, r, part.gradient.data(), weights, nullptr,
                             dx + begin * in_.channel_floats() + r * in_.row_floats(),
                             in_.channel_floats());
    }
  }

  const LaneLoops& loops_ = lane_loops();
  std::size_t weight_offset_ = 0, bias_offset_ = 0;
  Index pool_ = 0;  ///< size of the pooling's windows; 0 for a convolution alone
  Index stride_ = 1;
  bool want_input_gradient_ = false;
  LaneImage in_, conv_, out_;  ///< input, the convolution's output, the kernel's output
  Correlation forward_, backward_, weights_;
  int threads_ = 1;
  Index groups_ = 0;
  Scratch packed_, packed_turned_, sums_, bias_sums_;
  std::vector<Part> parts_;  ///< one for each thread
  std::vector<std::uint8_t> chosen_;
};

}  // namespace

MadeKernel make_portable_convolution(const KernelRequest& request) {
  const auto& convolution = std::get<Convolution>(request.layers[0].spec);
  if (!convolution.bias || convolution.groups > 1 || convolution.dilation > 1)
    return MadeKernel(nullptr);
  if (request.layers.size() > 1) {
    const auto& pooling = std::get<Pooling>(request.layers.back().spec);
    constexpr std::int64_t kMaxWindow = 15;  // its elements are numbered in a byte
    if (pooling.stride != pooling.kernel || pooling.padding != 0 || pooling.kernel > kMaxWindow)
      return MadeKernel(nullptr);
  }
  return PortableConvolution::make(request);
}

}  // namespace troupe::kernels::cpu
