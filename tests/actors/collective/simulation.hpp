#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <variant>
#include <vector>

#include "actors/collective/reduce_machine.hpp"

namespace troupe::collective {

/// Values of very different size, so that any other order of addition shows.
std::vector<float> draw_values(std::mt19937_64& random, std::size_t count);

/// The definition of a sum, as the documentation of Tree has it.
std::vector<float> naive_sum(RankRange range, std::span<const std::vector<float>> by_rank);

Buffer to_buffer(std::span<const float> values);
std::vector<float> to_floats(const Buffer& buffer);

using AnyMessage = std::variant<Partial, SliceSum, Extras>;

/// Records what a machine wants.
class Recorder : public ReduceMachine::Effects {
public:
  struct Sent {
    std::uint32_t to;
    AnyMessage message;
  };
  struct Done {
    std::uint64_t step;
    std::vector<double> extras;
  };

  void send(std::uint32_t to, Partial message) override {
    sent.push_back({to, std::move(message)});
  }
  void send(std::uint32_t to, SliceSum message) override {
    sent.push_back({to, std::move(message)});
  }
  void send(std::uint32_t to, Extras message) override { sent.push_back({to, std::move(message)}); }
  void slice_done(std::uint64_t step, std::uint32_t slice, Buffer sum) override;
  void bucket_done(std::uint64_t step, std::uint32_t bucket, Buffer sum) override;
  void step_done(std::uint64_t step, std::vector<double> extras) override;

  std::vector<Sent> sent;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Buffer> slices;   ///< by step, slice
  std::map<std::pair<std::uint64_t, std::uint32_t>, Buffer> buckets;  ///< by step, bucket
  std::vector<Done> steps;
};

}  // namespace troupe::collective
