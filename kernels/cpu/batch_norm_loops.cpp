#include "kernels/cpu/internal/batch_norm_loops.hpp"

#include <cstring>

#include "kernels/internal/wide_loop.hpp"
#include "kernels/internal/wide_math.hpp"

namespace troupe::kernels::cpu {

namespace {

// What compilers vectorise as eight, and take apart where registers are shorter.
using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(64)));
constexpr std::size_t kEight = 8;

// By reference: how such vectors are passed depends on what the CPU has.
[[gnu::always_inline]] inline void load(const float* x, Floats& value) {
  std::memcpy(&value, x, sizeof value);
}

/// What a run's channels go by, eight of them.
struct Lanes {
  Floats mean, scale, shift;
  [[gnu::always_inline]] void load_from(const ChannelCoefficients& channels, std::size_t c) {
    load(channels.mean + c, mean);
    load(channels.scale + c, scale);
    load(channels.shift + c, shift);
  }
  [[gnu::always_inline]] void fill(const ChannelCoefficients& channels) {
    mean = Floats{} + channels.mean[0];
    scale = Floats{} + channels.scale[0];
    shift = Floats{} + channels.shift[0];
  }
};

/// Sums of two kinds for each of eight lanes; the second is of products.
struct LaneSums {
  Doubles first{}, second{};
  [[gnu::always_inline]] void add(const Floats& a, const Floats& b) {
    const Doubles x = __builtin_convertvector(a, Doubles);
    first += x;
    second += x * __builtin_convertvector(b, Doubles);
  }
};

/// What a run's sums are made of at each value: x and x, or dy (where the ReLU was open) and
/// x - mean.
struct Values {
  [[gnu::always_inline]] static void add(LaneSums& sums, const float* x, const float*, const Lanes&,
                                         bool) {
    Floats value;
    load(x, value);
    sums.add(value, value);
  }
  [[gnu::always_inline]] static void add(double& first, double& second, float x, float, float,
                                         float, float, bool) {
    first += static_cast<double>(x);
    second += static_cast<double>(x) * static_cast<double>(x);
  }
};
struct Gradients {
  [[gnu::always_inline]] static void add(LaneSums& sums, const float* x, const float* dy,
                                         const Lanes& lanes, bool relu) {
    Floats centred, gradient;
    load(x, centred);
    load(dy, gradient);
    centred -= lanes.mean;
    if (relu) {
      const Floats y = centred * lanes.scale + lanes.shift;
      gradient = y > 0.0f ? gradient : Floats{};
    }
    sums.add(gradient, centred);
  }
  [[gnu::always_inline]] static void add(double& first, double& second, float x, float dy,
                                         float mean, float scale, float shift, bool relu) {
    const float centred = x - mean;
    const float gradient = relu && !(centred * scale + shift > 0.0f) ? 0.0f : dy;
    first += static_cast<double>(gradient);
    second += static_cast<double>(gradient) * static_cast<double>(centred);
  }
};

/// Channels side by side, `Eights` times eight of them.
template <class Kind, std::size_t Eights>
[[gnu::always_inline]] inline void add_lanes(const ChannelRuns& runs, const float* x,
                                             const float* dy, const ChannelCoefficients& channels,
                                             double* first, double* second) {
  LaneSums sums[Eights];
  Lanes lanes[Eights];
  for (std::size_t e = 0; e < Eights; ++e) lanes[e].load_from(channels, e * kEight);
  for (std::size_t n = 0; n < runs.batch; ++n)
    for (std::size_t s = 0; s < runs.area; ++s) {
      const std::size_t at = n * runs.image + s * runs.pixel;
      for (std::size_t e = 0; e < Eights; ++e)
        Kind::add(sums[e], x + at + e * kEight, dy + at + e * kEight, lanes[e], channels.relu);
    }
  for (std::size_t e = 0; e < Eights; ++e)
    for (std::size_t i = 0; i < kEight; ++i) {
      first[e * kEight + i] = sums[e].first[i];
      second[e * kEight + i] = sums[e].second[i];
    }
}

/// One channel, whose pixels lie side by side: sixteen lanes that are then added in halves.
template <class Kind>
[[gnu::always_inline]] inline void add_row(const ChannelRuns& runs, const float* x, const float* dy,
                                           const ChannelCoefficients& channels, double* first,
                                           double* second) {
  LaneSums low, high;
  Lanes lanes;
  lanes.fill(channels);
  double rest = 0.0, rest_of_products = 0.0;
  for (std::size_t n = 0; n < runs.batch; ++n) {
    const std::size_t begin = n * runs.image;
    std::size_t s = 0;
    for (; s + 2 * kEight <= runs.area; s += 2 * kEight) {
      Kind::add(low, x + begin + s, dy + begin + s, lanes, channels.relu);
      Kind::add(high, x + begin + s + kEight, dy + begin + s + kEight, lanes, channels.relu);
    }
    for (; s < runs.area; ++s)
      Kind::add(rest, rest_of_products, x[begin + s], dy[begin + s], channels.mean[0],
                channels.scale[0], channels.shift[0], channels.relu);
  }
  const auto total = [](const Doubles& a, const Doubles& b) {
    const Doubles sum = a + b;
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
  };
  *first = total(low.first, high.first) + rest;
  *second = total(low.second, high.second) + rest_of_products;
}

/// Any number of channels side by side.
template <class Kind>
[[gnu::always_inline]] inline void add_each(const ChannelRuns& runs, std::size_t count,
                                            const float* x, const float* dy,
                                            const ChannelCoefficients& channels, double* first,
                                            double* second) {
  for (std::size_t c = 0; c < count; ++c) first[c] = second[c] = 0.0;
  for (std::size_t n = 0; n < runs.batch; ++n)
    for (std::size_t s = 0; s < runs.area; ++s) {
      const std::size_t at = n * runs.image + s * runs.pixel;
      for (std::size_t c = 0; c < count; ++c)
        Kind::add(first[c], second[c], x[at + c], dy[at + c], channels.mean[c], channels.scale[c],
                  channels.shift[c], channels.relu);
    }
}

template <class Kind>
[[gnu::always_inline]] inline void add_up(const ChannelRuns& runs, std::size_t count,
                                          const float* x, const float* dy,
                                          const ChannelCoefficients& channels, double* first,
                                          double* second) {
  if (count == 2 * kEight)
    add_lanes<Kind, 2>(runs, x, dy, channels, first, second);
  else if (count == kEight)
    add_lanes<Kind, 1>(runs, x, dy, channels, first, second);
  else if (count == 1 && runs.pixel == 1)
    add_row<Kind>(runs, x, dy, channels, first, second);
  else
    add_each<Kind>(runs, count, x, dy, channels, first, second);
}

/// Calls `body(at, c)` for each element of a run with `count` channels, of which c is one.
template <class Body>
[[gnu::always_inline]] inline void each_element(const ChannelRuns& runs, std::size_t count,
                                                Body&& body) {
  for (std::size_t n = 0; n < runs.batch; ++n) {
    const std::size_t begin = n * runs.image;
    if (count == 1 && runs.pixel == 1) {
      TROUPE_INDEPENDENT
      for (std::size_t s = 0; s < runs.area; ++s) body(begin + s, std::size_t{0});
      continue;
    }
    for (std::size_t s = 0; s < runs.area; ++s) {
      TROUPE_INDEPENDENT
      for (std::size_t c = 0; c < count; ++c) body(begin + s * runs.pixel + c, c);
    }
  }
}

}  // namespace

TROUPE_WIDE_LOOP(add_values,
                 (const ChannelRuns& runs, std::size_t count, const float* x,
                  const ChannelCoefficients& channels, double* sums, double* squares),
                 (runs, count, x, channels, sums, squares)) {
  add_up<Values>(runs, count, x, x, channels, sums, squares);
}

TROUPE_WIDE_LOOP(add_gradients,
                 (const ChannelRuns& runs, std::size_t count, const float* x, const float* dy,
                  const ChannelCoefficients& channels, double* sums, double* products),
                 (runs, count, x, dy, channels, sums, products)) {
  add_up<Gradients>(runs, count, x, dy, channels, sums, products);
}

TROUPE_WIDE_LOOP(normalize,
                 (const ChannelRuns& runs, std::size_t count, const float* x,
                  const ChannelCoefficients& channels, float* y),
                 (runs, count, x, channels, y)) {
  if (channels.relu)
    each_element(runs, count, [&](std::size_t at, std::size_t c) {
      const float value = (x[at] - channels.mean[c]) * channels.scale[c] + channels.shift[c];
      y[at] = value < 0.0f ? 0.0f : value;
    });
  else
    each_element(runs, count, [&](std::size_t at, std::size_t c) {
      y[at] = (x[at] - channels.mean[c]) * channels.scale[c] + channels.shift[c];
    });
}

TROUPE_WIDE_LOOP(normalize_backward,
                 (const ChannelRuns& runs, std::size_t count, const float* x, const float* dy,
                  const ChannelCoefficients& channels, const GradientCoefficients& gradients,
                  float* dx),
                 (runs, count, x, dy, channels, gradients, dx)) {
  const bool relu = channels.relu;
  each_element(runs, count, [&](std::size_t at, std::size_t c) {
    const float centred = x[at] - channels.mean[c];
    const bool shut = relu && !(centred * channels.scale[c] + channels.shift[c] > 0.0f);
    const float gradient = shut ? 0.0f : dy[at];
    dx[at] = channels.scale[c] * (gradient - gradients.mean_dy[c]) - centred * gradients.slope[c];
  });
}

void run_sums(const ChannelRuns& runs, std::size_t i, const float* x, double* sums,
              double* squares) {
  add_values(runs, runs.channels_in(i), x + i * runs.run, {}, sums, squares);
}

void normalize_run(const ChannelRuns& runs, std::size_t i, const float* x,
                   const ChannelCoefficients& channels, float* y) {
  normalize(runs, runs.floats_in(i), x + i * runs.run, channels, y + i * runs.run);
}

void run_gradient_sums(const ChannelRuns& runs, std::size_t i, const float* x, const float* dy,
                       const ChannelCoefficients& channels, double* sums, double* products) {
  add_gradients(runs, runs.channels_in(i), x + i * runs.run, dy + i * runs.run, channels, sums,
                products);
}

void run_gradient(const ChannelRuns& runs, std::size_t i, const float* x, const float* dy,
                  const ChannelCoefficients& channels, const GradientCoefficients& gradients,
                  float* dx) {
  normalize_backward(runs, runs.floats_in(i), x + i * runs.run, dy + i * runs.run, channels,
                     gradients, dx + i * runs.run);
}

}  // namespace troupe::kernels::cpu
