#include "kernels/cpu/internal/dnnl_support.hpp"

namespace troupe::kernels::cpu {

namespace {

class DnnlReorder final : public LayerKernel {
public:
  DnnlReorder(const Activation& from, const Activation& to, int threads, SharedScratch& scratch)
      : threads_(threads), engine_(scratch) {
    inputs_ = {from};
    output_ = to;
    forward_ = bound(describe_memory(from), describe_memory(to));
    engine_.scratch.restart();
    backward_ = bound(describe_memory(to), describe_memory(from));
  }

  KernelTraits traits() const noexcept override {
    return {.backward_reads_input = false, .backward_reads_output = false};
  }
  Status forward(const ForwardPass& pass) override {
    return run(forward_, pass.input(), pass.output);
  }
  Status backward(const BackwardPass& pass) override {
    if (pass.input_gradient() == nullptr) return {};
    return run(backward_, pass.output_gradient, pass.input_gradient());
  }

private:
  Bound bound(const memory::desc& from, const memory::desc& to) {
    const dnnl::reorder::primitive_desc description(engine_.engine, from, engine_.engine, to,
                                                    attributes());
    Bound result(dnnl::reorder(description), description, engine_);
    result.bind(DNNL_ARG_FROM, from, engine_);
    result.bind(DNNL_ARG_TO, to, engine_);
    return result;
  }
  Status run(Bound& reorder, const float* from, float* to) {
    return guarded("reorder", threads_, [&] {
      reorder.set(DNNL_ARG_FROM, from);
      reorder.set(DNNL_ARG_TO, to);
      reorder.run(engine_);
    });
  }

  int threads_;
  Engine engine_;
  Bound forward_, backward_;
};

}  // namespace

MadeKernel make_dnnl_reorder(const Activation& from, const Activation& to, int threads,
                             SharedScratch& scratch) {
  std::unique_ptr<LayerKernel> kernel;
  TROUPE_TRY(guarded("reorder", threads,
                     [&] { kernel = std::make_unique<DnnlReorder>(from, to, threads, scratch); }));
  return kernel;
}

}  // namespace troupe::kernels::cpu
