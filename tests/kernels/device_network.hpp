#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/compute_device.hpp"
#include "kernels/internal/network.hpp"

namespace troupe::kernels {

/// The device that tests of layers and models run on: what the environment's TROUPE_TEST_DEVICE
/// says ("cuda:1"), else the CPU.
Result<ComputeDevice> test_device();

/// A network on a device, with everything that goes there and comes back copied.
class DeviceNetwork {
public:
  /// On the tests' device.
  static Result<DeviceNetwork> create(const Model& model, std::int64_t batch,
                                      NetworkOptions options);
  static Result<DeviceNetwork> create_on(const ComputeDevice& device, const Model& model,
                                         std::int64_t batch, NetworkOptions options);

  /// The input of the next forward pass; and of a model of token ids.
  void set_input(std::span<const float> values) { input_ = {values.begin(), values.end()}; }
  void set_ids(std::span<const std::int32_t> ids);

  Status forward(std::span<const float> parameters, const PassKey& key = {});
  std::size_t output_size() const { return network_->output().size(); }
  /// Of the last forward pass.
  const std::vector<float>& output() const { return output_; }

  /// Writes all of `gradients`, starting from what is there.
  Status backward(std::span<const float> output_gradient, std::span<float> gradients);
  /// Of the last backward pass, if it was asked for.
  const std::vector<float>& input_gradient() const { return input_gradient_; }

private:
  explicit DeviceNetwork(ComputeDevice device) : device_(std::move(device)) {}
  Status send(Buffer& to, std::span<const float> values);
  static float* floats(Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

  ComputeDevice device_;
  std::unique_ptr<Stream> stream_;
  bool wants_input_gradient_ = false;
  Buffer parameters_, gradients_, key_;
  std::unique_ptr<Network> network_;
  std::vector<float> input_, output_, input_gradient_;
};

}  // namespace troupe::kernels
