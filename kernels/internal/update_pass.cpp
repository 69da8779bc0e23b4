#include "kernels/internal/update_pass.hpp"

#include "kernels/statistics.hpp"

namespace troupe::kernels {

void update_on_host(const UpdatePass& pass) {
  pass.optimizer.update(pass.factors, pass.gradient, pass.parameters, pass.state);
  const Model& model = pass.optimizer.model();
  for (const GradientRun& run : pass.gradient)
    update_statistics(model, run.begin, run.values, pass.statistic_scale,
                      {pass.parameters, model.flat_size()});
}

}  // namespace troupe::kernels
