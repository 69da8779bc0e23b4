#include "kernels/cuda/internal/cudnn_descriptor.hpp"

#include <iterator>
#include <utility>
#include <vector>

#include "kernels/cuda/internal/context.hpp"

namespace troupe::kernels::cuda {

Result<Descriptor> Descriptor::create(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  TROUPE_TRY(check(cudnnBackendCreateDescriptor(type, &made), "cudnnBackendCreateDescriptor"));
  Descriptor descriptor;
  descriptor.handle_.reset(made);
  return descriptor;
}

Status Descriptor::read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        std::int64_t asked, std::int64_t& count, void* values) const {
  return check(cudnnBackendGetAttribute(get(), name, type, asked, &count, values),
               "cudnnBackendGetAttribute");
}

DescriptorBuilder::DescriptorBuilder(cudnnBackendDescriptorType_t type) {
  auto made = Descriptor::create(type);
  if (made.ok())
    descriptor_ = std::move(made).value();
  else
    status_ = made.status();
}

DescriptorBuilder& DescriptorBuilder::set(cudnnBackendAttributeName_t name,
                                          cudnnBackendAttributeType_t type, std::int64_t count,
                                          const void* values) {
  if (status_.ok())
    status_ = check(cudnnBackendSetAttribute(descriptor_.get(), name, type, count, values),
                    "cudnnBackendSetAttribute");
  return *this;
}

Result<Descriptor> DescriptorBuilder::finish() {
  TROUPE_TRY(status_);
  TROUPE_TRY(check(cudnnBackendFinalize(descriptor_.get()), "cudnnBackendFinalize"));
  return std::move(descriptor_);
}

DescriptorBuilder& DescriptorBuilder::set(cudnnBackendAttributeName_t name,
                                          std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor& value : values) handles.push_back(value.get());
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(handles), handles.data());
}

}  // namespace troupe::kernels::cuda
