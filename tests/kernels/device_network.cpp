#include "tests/kernels/device_network.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/internal/backend.hpp"

namespace troupe::kernels {

Result<ComputeDevice> test_device() {
  const char* const chosen = std::getenv("TROUPE_TEST_DEVICE");
  TROUPE_ASSIGN(const DeviceName name, DeviceName::parse(chosen != nullptr ? chosen : "cpu"));
  return ComputeDevice::open(name);
}

Result<DeviceNetwork> DeviceNetwork::create(const Model& model, std::int64_t batch,
                                            NetworkOptions options) {
  TROUPE_ASSIGN(const ComputeDevice device, test_device());
  return create_on(device, model, batch, std::move(options));
}

Result<DeviceNetwork> DeviceNetwork::create_on(const ComputeDevice& device, const Model& model,
                                               std::int64_t batch, NetworkOptions options) {
  DeviceNetwork made(device);
  TROUPE_ASSIGN(made.stream_, device.backend().make_stream());
  options.device = device;
  options.stream = made.stream_.get();
  made.wants_input_gradient_ = options.input_gradient;
  const std::size_t bytes = model.flat_size() * sizeof(float);
  TROUPE_ASSIGN(made.parameters_, device.allocate(bytes));
  TROUPE_ASSIGN(made.gradients_, device.allocate(bytes));
  TROUPE_ASSIGN(made.key_, device.allocate(sizeof(PassKey)));
  TROUPE_ASSIGN(Network network, Network::create(model, batch, options));
  made.network_ = std::make_unique<Network>(std::move(network));
  return made;
}

void DeviceNetwork::set_ids(std::span<const std::int32_t> ids) {
  input_.resize(ids.size());
  std::memcpy(input_.data(), ids.data(), ids.size_bytes());
}

Status DeviceNetwork::send(Buffer& to, std::span<const float> values) {
  return stream_->copy(to.data(), values.data(), values.size_bytes());
}

namespace {

/// That of a rank without others.
Status of_one_rank(std::span<double>) {
  return {};
}

}  // namespace

Status DeviceNetwork::forward(std::span<const float> parameters, const PassKey& key) {
  TROUPE_TRY(send(parameters_, parameters));
  const auto input = network_->input();
  TROUPE_TRY(stream_->copy(input.data(), input_.data(), input.size_bytes()));
  TROUPE_TRY(stream_->copy(key_.data(), &key, sizeof key));
  TROUPE_TRY(network_->forward(floats(parameters_), reinterpret_cast<const PassKey*>(key_.data()),
                               of_one_rank));
  const auto output = network_->output();
  output_.resize(output.size());
  TROUPE_TRY(stream_->copy(output_.data(), output.data(), output.size_bytes()));
  return stream_->synchronize();
}

Status DeviceNetwork::backward(std::span<const float> output_gradient, std::span<float> gradients) {
  const auto given = network_->output_gradient();
  TROUPE_TRY(stream_->copy(given.data(), output_gradient.data(), output_gradient.size_bytes()));
  TROUPE_TRY(send(gradients_, gradients));
  TROUPE_TRY(network_->backward(floats(parameters_), floats(gradients_), {}, of_one_rank));
  TROUPE_TRY(stream_->copy(gradients.data(), gradients_.data(), gradients.size_bytes()));
  if (wants_input_gradient_) {
    const auto from = network_->input_gradient();
    input_gradient_.resize(from.size());
    TROUPE_TRY(stream_->copy(input_gradient_.data(), from.data(), from.size_bytes()));
  }
  return stream_->synchronize();
}

}  // namespace troupe::kernels
