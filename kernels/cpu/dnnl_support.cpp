#include "kernels/cpu/internal/dnnl_support.hpp"

#include <new>

#include <fmt/format.h>

// Of the OpenMP runtime that oneDNN is linked with; <omp.h> is not there for every compiler.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}

namespace troupe::kernels::cpu {

namespace {
Code code_of(dnnl_status_t status) {
  switch (status) {
    case dnnl_out_of_memory:
      return Code::resource_exhausted;
    case dnnl_unimplemented:
      return Code::not_supported;
    default:
      return Code::internal;
  }
}
}  // namespace

OpenMpThreads::OpenMpThreads(int threads) noexcept : before_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}

OpenMpThreads::~OpenMpThreads() {
  omp_set_num_threads(before_);
}

Status guarded(std::string_view what, int threads, const std::function<void()>& body) {
  OpenMpThreads scope(threads);
  try {
    body();
    return {};
  } catch (const dnnl::error& error) {
    return {code_of(error.status), fmt::format("{}: oneDNN: {}", what, error.what())};
  } catch (const std::bad_alloc&) {
    return {Code::resource_exhausted, fmt::format("{}: out of memory", what)};
  }
}

memory::dims dims_of(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

memory::desc plain_desc(const memory::dims& dims) {
  memory::dims strides(dims.size());
  memory::dim stride = 1;
  for (std::size_t i = dims.size(); i-- > 0; stride *= dims[i]) strides[i] = stride;
  return {dims, memory::data_type::f32, strides};
}

memory::dims convolution_weight_dims(const KernelRequest& request) {
  const Layer& layer = request.layers[0];
  memory::dims dims = dims_of(request.model.parameters()[layer.parameters[0]].shape);
  const auto groups = std::get<Convolution>(layer.spec).groups;
  if (groups > 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
  }
  return dims;
}

memory::desc describe_memory(const Activation& activation) {
  if (activation.layout == Activation::Layout::blocked)
    return *static_cast<const memory::desc*>(activation.description.get());
  return plain_desc(dims_of(activation.shape));
}

Activation describe_activation(const Shape& shape, const memory::desc& description) {
  if (description == plain_desc(dims_of(shape))) return plain_activation(shape);
  return {shape, Activation::Layout::blocked, description.get_size() / sizeof(float),
          std::make_shared<memory::desc>(description)};
}

bool lie_alike(const Activation& a, const Activation& b) {
  return a.description == b.description || describe_memory(a) == describe_memory(b);
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Staged::Staged(const memory::desc& outside, const memory::desc& inside, Engine& engine) {
  if (outside == inside) return;
  copy_ = engine.scratch.add(inside.get_size());
  const auto bound = [&](const memory::desc& from, const memory::desc& to) {
    const dnnl::reorder::primitive_desc description(engine.engine, from, engine.engine, to,
                                                    attributes());
    return Bound(dnnl::reorder(description), description, engine);
  };
  load_ = bound(outside, inside);
  load_.bind(DNNL_ARG_FROM, outside, engine);
  load_.bind(DNNL_ARG_TO, inside, engine);
  store_ = bound(inside, outside);
  store_.bind(DNNL_ARG_FROM, inside, engine);
  store_.bind(DNNL_ARG_TO, outside, engine);
}

const float* Staged::load(const float* outside, Engine& engine) {
  if (!load_) return outside;
  load_.set(DNNL_ARG_FROM, outside);
  load_.set(DNNL_ARG_TO, engine.floats_at(copy_));
  load_.run(engine);
  return engine.floats_at(copy_);
}

float* Staged::target(float* outside, Engine& engine) {
  return store_ ? engine.floats_at(copy_) : outside;
}

void Staged::store(float* outside, Engine& engine) {
  if (!store_) return;
  store_.set(DNNL_ARG_FROM, engine.floats_at(copy_));
  store_.set(DNNL_ARG_TO, outside);
  store_.run(engine);
}

}  // namespace troupe::kernels::cpu
