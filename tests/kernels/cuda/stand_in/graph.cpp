#include "tests/kernels/cuda/stand_in/graph.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "kernels/short_floats.hpp"

namespace troupe::stand_in {

namespace {

using Index = std::array<std::int64_t, 4>;

bool is_short(const Tensor& tensor) {
  return tensor.type == CUDNN_DATA_BFLOAT16 || tensor.type == CUDNN_DATA_HALF;
}

std::int64_t offset(const Tensor& tensor, const Index& at) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) sum += at[i] * tensor.strides[i];
  return sum;
}

template <class Body>
void each_index(const Tensor& tensor, const Body& body) {
  Index at;
  for (at[0] = 0; at[0] < tensor.dims[0]; ++at[0])
    for (at[1] = 0; at[1] < tensor.dims[1]; ++at[1])
      for (at[2] = 0; at[2] < tensor.dims[2]; ++at[2])
        for (at[3] = 0; at[3] < tensor.dims[3]; ++at[3]) body(at);
}

/// The element of a tensor with fewer of some dimensions that goes with `at` of a larger one.
Index shared(const Index& at, const Tensor& of, const Tensor& to) {
  Index shrunk = at;
  for (std::size_t i = 0; i < at.size(); ++i)
    shrunk[i] = at[i] / std::max<std::int64_t>(1, of.dims[i] / to.dims[i]);
  return shrunk;
}

float round_to(const Tensor& tensor, float value) {
  if (tensor.type == CUDNN_DATA_BFLOAT16) return kernels::bf16_value(kernels::bf16_bits(value));
  if (tensor.type == CUDNN_DATA_HALF) return kernels::f16_value(kernels::f16_bits(value));
  return value;
}

/// Memory of a tensor: an address, or floats of ours if it is virtual.
struct Memory {
  Tensor first;  ///< under whose type it was written
  void* address = nullptr;
  std::vector<float> own = {};

  float load(std::int64_t at) const {
    if (address == nullptr) return own.at(static_cast<std::size_t>(at));
    if (!is_short(first)) return static_cast<const float*>(address)[at];
    const std::uint16_t bits = static_cast<const std::uint16_t*>(address)[at];
    return first.type == CUDNN_DATA_HALF ? kernels::f16_value(bits) : kernels::bf16_value(bits);
  }
  void store(std::int64_t at, float value) {
    if (address == nullptr)
      own.at(static_cast<std::size_t>(at)) = round_to(first, value);
    else if (!is_short(first))
      static_cast<float*>(address)[at] = value;
    else
      static_cast<std::uint16_t*>(address)[at] =
          first.type == CUDNN_DATA_HALF ? kernels::f16_bits(value) : kernels::bf16_bits(value);
  }
};

class Run {
public:
  explicit Run(const std::function<void*(const Tensor&)>& address) : address_(address) {}

  bool operation(const GraphOperation& op) {
    if (op.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      const auto from = find(op.inputs[0]);
      if (from == nullptr) return false;
      memories_[op.output.id] = from;
      return true;
    }
    std::vector<std::shared_ptr<Memory>> in;
    for (const Tensor& tensor : op.inputs) {
      in.push_back(find(tensor));
      if (in.back() == nullptr) return false;
    }
    const auto out = find(op.output);
    if (out == nullptr) return false;
    const auto value = [&](std::size_t input, const Index& at) {
      const Tensor& tensor = op.inputs[input];
      return round_to(tensor, in[input]->load(offset(tensor, at)));
    };
    if (op.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
      each_index(op.output, [&](const Index& at) {
        float sum = 0.0f;
        for (std::int64_t k = 0; k < op.inputs[0].dims[3]; ++k) {
          const Index b{at[0], at[1] / (op.output.dims[1] / op.inputs[1].dims[1]), k, at[3]};
          sum += value(0, {at[0], at[1], at[2], k}) * value(1, b);
        }
        out->store(offset(op.output, at), sum);
      });
    else if (op.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
      reduce(op, value, *out);
    else
      each_index(op.output, [&](const Index& at) {
        std::array<float, 3> x{};
        for (std::size_t i = 0; i < op.inputs.size(); ++i)
          x[i] = value(i, shared(at, op.output, op.inputs[i]));
        out->store(offset(op.output, at), pointwise(op, x, at));
      });
    return true;
  }

private:
  std::shared_ptr<Memory> find(const Tensor& tensor) {
    auto& memory = memories_[tensor.id];
    if (memory != nullptr) return memory;
    void* const data = tensor.is_virtual ? nullptr : address_(tensor);
    if (!tensor.is_virtual && data == nullptr) return nullptr;
    memory = std::make_shared<Memory>(Memory{tensor, data});
    if (tensor.is_virtual) {
      std::int64_t last = 0;
      for (std::size_t i = 0; i < 4; ++i) last += (tensor.dims[i] - 1) * tensor.strides[i];
      memory->own.assign(static_cast<std::size_t>(last + 1), NAN);
    }
    return memory;
  }

  template <class Value>
  static void reduce(const GraphOperation& op, const Value& value, Memory& out) {
    std::map<std::int64_t, float> results;
    each_index(op.inputs[0], [&](const Index& at) {
      const float x = value(0, at);
      const auto [found, is_new] =
          results.try_emplace(offset(op.output, shared(at, op.inputs[0], op.output)), x);
      if (is_new) return;
      found->second =
          op.reduction == CUDNN_REDUCE_TENSOR_MAX ? std::max(found->second, x) : found->second + x;
    });
    for (const auto& [at, result] : results) out.store(at, result);
  }

  static float pointwise(const GraphOperation& op, const std::array<float, 3>& x, const Index& at) {
    switch (op.pointwise) {
      case CUDNN_POINTWISE_MUL:
        return x[0] * x[1];
      case CUDNN_POINTWISE_ADD:
        return x[0] + x[1];
      case CUDNN_POINTWISE_SUB:
        return x[0] - x[1];
      case CUDNN_POINTWISE_DIV:
        return x[0] / x[1];
      case CUDNN_POINTWISE_EXP:
        return std::exp(x[0]);
      case CUDNN_POINTWISE_LOG:
        return std::log(x[0]);
      case CUDNN_POINTWISE_GEN_INDEX:
        return static_cast<float>(at[static_cast<std::size_t>(op.axis)]);
      case CUDNN_POINTWISE_CMP_GE:
        return x[0] >= x[1] ? 1.0f : 0.0f;
      case CUDNN_POINTWISE_BINARY_SELECT:
        return x[2] != 0.0f ? x[0] : x[1];
      default:
        return NAN;
    }
  }

  const std::function<void*(const Tensor&)>& address_;
  std::map<std::int64_t, std::shared_ptr<Memory>> memories_;
};

bool matmul_fits(const GraphOperation& op) {
  const Tensor &a = op.inputs[0], &b = op.inputs[1], &c = op.output;
  constexpr std::int64_t kRun = 8;
  return is_short(a) && a.type == b.type && a.dims[0] == b.dims[0] && a.dims[0] == c.dims[0] &&
         a.dims[1] == c.dims[1] && a.dims[1] % b.dims[1] == 0 && a.dims[2] == c.dims[2] &&
         b.dims[3] == c.dims[3] && a.dims[3] == b.dims[2] &&
         // One side of each product here is a head's elements.
         (a.dims[3] % kRun == 0 || b.dims[3] % kRun == 0);
}

/// Whether each operand has the output's dimensions, or one that they are a multiple of.
bool sizes_fit(const GraphOperation& op) {
  const bool reduces = op.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR;
  return std::ranges::all_of(op.inputs, [&](const Tensor& input) {
    const Tensor &large = reduces ? input : op.output, &small = reduces ? op.output : input;
    for (std::size_t i = 0; i < 4; ++i)
      if (large.dims[i] % small.dims[i] != 0 ||
          (!reduces && small.dims[i] != 1 && small.dims[i] != large.dims[i]))
        return false;
    return true;
  });
}

}  // namespace

bool fits(const std::vector<GraphOperation>& graph) {
  std::set<std::int64_t> written;
  for (const GraphOperation& op : graph) {
    for (const Tensor& input : op.inputs)
      if (input.is_virtual && !written.contains(input.id)) return false;
    written.insert(op.output.id);
    if (op.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) continue;
    if (op.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR ? !matmul_fits(op) : !sizes_fit(op))
      return false;
  }
  return true;
}

bool run(const std::vector<GraphOperation>& graph,
         const std::function<void*(const Tensor&)>& address) {
  Run state(address);
  return std::ranges::all_of(graph, [&](const auto& op) { return state.operation(op); });
}

}  // namespace troupe::stand_in
