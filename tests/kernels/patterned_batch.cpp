#include "tests/kernels/patterned_batch.hpp"

namespace troupe::kernels {

Batch patterned_batch(const Model& model, std::int64_t count) {
  const bool ids = model.input_dtype() == DType::i32;
  Batch batch{
      Tensor::allocate(ids ? DType::i32 : DType::u8, model.input().with_first(count)).value(),
      Tensor::allocate(DType::i32, {count * model.labels_per_sample()}).value()};
  for (std::size_t i = 0; i < batch.samples.elements(); ++i) {
    if (ids)
      batch.samples.data<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7 % 50);
    else
      batch.samples.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 37 % 251);
  }
  for (std::size_t i = 0; i < batch.labels.elements(); ++i)
    batch.labels.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 10);
  return batch;
}

}  // namespace troupe::kernels
