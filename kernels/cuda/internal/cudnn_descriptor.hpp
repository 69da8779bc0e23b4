#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include <cudnn.h>

#include "runtime/base/status.hpp"

// cuDNN's graph API: descriptors are made, given attributes and finalized, and a plan of a graph of
// operations is run on addresses (cuDNN documentation, "Graph API", cudnnBackend...).
namespace troupe::kernels::cuda {

/// A descriptor. Of those that it refers to cuDNN wants that they live as long.
class Descriptor {
public:
  Descriptor() = default;
  /// One without attributes, for cuDNN to fill in.
  static Result<Descriptor> create(cudnnBackendDescriptorType_t type);
  cudnnBackendDescriptor_t get() const noexcept { return handle_.get(); }
  /// Reads an attribute: up to `asked` values, of which `count` are there.
  Status read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
              std::int64_t asked, std::int64_t& count, void* values) const;

private:
  friend class DescriptorBuilder;
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t it) const noexcept {
      static_cast<void>(cudnnBackendDestroyDescriptor(it));
    }
  };
  std::unique_ptr<std::remove_pointer_t<cudnnBackendDescriptor_t>, Destroy> handle_;
};

/// Makes a descriptor: attributes one after the other, then finish(), which gives the first error.
class DescriptorBuilder {
public:
  explicit DescriptorBuilder(cudnnBackendDescriptorType_t type);

  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         std::int64_t count, const void* values);
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    return set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, std::int64_t value) {
    return set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, float value) {
    return set(name, CUDNN_TYPE_FLOAT, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, bool value) {
    return set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value) {
    return set(name, CUDNN_TYPE_POINTWISE_MODE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnReduceTensorOp_t value) {
    return set(name, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value) {
    return set(name, CUDNN_TYPE_CONVOLUTION_MODE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value) {
    return set(name, CUDNN_TYPE_HEUR_MODE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
    return set(name, CUDNN_TYPE_HANDLE, 1, &value);
  }
  DescriptorBuilder& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    const cudnnBackendDescriptor_t handle = value.get();
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  }

  DescriptorBuilder& set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);

  Result<Descriptor> finish();

private:
  Status status_;
  Descriptor descriptor_;
};

}  // namespace troupe::kernels::cuda
