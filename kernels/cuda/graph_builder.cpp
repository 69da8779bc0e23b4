#include "kernels/cuda/internal/graph_builder.hpp"

#include <utility>

namespace troupe::kernels::cuda {

GraphLayout GraphLayout::packed(const std::array<std::int64_t, 4>& dims) {
  return {dims, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}};
}

GraphLayout GraphLayout::transposed() const {
  GraphLayout other = *this;
  std::swap(other.dims[2], other.dims[3]);
  std::swap(other.strides[2], other.strides[3]);
  return other;
}

std::size_t GraphBuilder::add_part(DescriptorBuilder& builder) {
  auto made = builder.finish();
  if (status_.ok() && !made.ok()) status_ = made.status();
  graph_.parts.push_back(made.ok() ? std::move(made).value() : Descriptor());
  return graph_.parts.size() - 1;
}

void GraphBuilder::add_operation(DescriptorBuilder& builder) {
  auto made = builder.finish();
  if (status_.ok() && !made.ok()) status_ = made.status();
  if (made.ok()) graph_.operations.push_back(std::move(made).value());
}

GraphBuilder::Value GraphBuilder::add_tensor(std::int64_t id, const GraphLayout& layout,
                                             cudnnDataType_t type, const TensorKind& kind) {
  auto made =
      GraphTensor{id, layout.dims, layout.strides, type, kind.is_virtual, kind.by_value}.describe();
  if (status_.ok() && !made.ok()) status_ = made.status();
  graph_.parts.push_back(made.ok() ? std::move(made).value() : Descriptor());
  values_.push_back({graph_.parts.size() - 1, type});
  return values_.size() - 1;
}

GraphBuilder::Value GraphBuilder::tensor(std::int64_t id, const GraphLayout& layout,
                                         cudnnDataType_t type) {
  return add_tensor(id, layout, type, {});
}
GraphBuilder::Value GraphBuilder::scalar(std::int64_t id) {
  return add_tensor(id, GraphLayout::packed({1, 1, 1, 1}), CUDNN_DATA_FLOAT, {.by_value = true});
}
GraphBuilder::Value GraphBuilder::between(const GraphLayout& layout, cudnnDataType_t type) {
  return add_tensor(next_id_++, layout, type, {.is_virtual = true});
}

cudnnDataType_t GraphBuilder::math_of(Value value) const {
  const cudnnDataType_t type = values_[value].type;
  return type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN ? type : CUDNN_DATA_FLOAT;
}

void GraphBuilder::matmul(Value a, Value b, Value to) {
  DescriptorBuilder kind(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  const std::size_t part = add_part(kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT));
  DescriptorBuilder operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  add_operation(operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(a))
                    .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(b))
                    .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(to))
                    .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, graph_.parts[part]));
}

void GraphBuilder::pointwise(cudnnPointwiseMode_t mode, Value to, Value x, std::optional<Value> b,
                             std::optional<Value> select) {
  DescriptorBuilder kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  const std::size_t part = add_part(
      kind.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, math_of(to)));
  DescriptorBuilder operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, graph_.parts[part])
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(x))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(to));
  if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(*b));
  if (select) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, at(*select));
  add_operation(operation);
}

void GraphBuilder::index(std::int64_t axis, Value to, Value x) {
  DescriptorBuilder kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  const std::size_t part = add_part(kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_GEN_INDEX)
                                        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_INT32)
                                        .set(CUDNN_ATTR_POINTWISE_AXIS, axis));
  DescriptorBuilder operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  add_operation(operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, graph_.parts[part])
                    .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(x))
                    .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(to)));
}

void GraphBuilder::reduce(cudnnReduceTensorOp_t how, Value to, Value x) {
  DescriptorBuilder kind(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  const std::size_t part = add_part(kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, how)
                                        .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT));
  DescriptorBuilder operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  add_operation(operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, graph_.parts[part])
                    .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(x))
                    .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(to)));
}

void GraphBuilder::reshape(Value to, Value x) {
  DescriptorBuilder operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  add_operation(operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(x))
                    .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(to)));
}

Result<Graph> GraphBuilder::finish() {
  TROUPE_TRY(status_);
  return std::move(graph_);
}

}  // namespace troupe::kernels::cuda
