#include "kernels/internal/parameter_runs.hpp"

namespace troupe::kernels {

std::vector<ParameterRun> parameter_runs(const Model& model, bool decay_vectors) {
  std::vector<ParameterRun> runs;
  for (const ParameterInfo& info : model.parameters())
    if (info.kind == ParameterKind::trained)
      runs.push_back({info.offset, info.offset + info.elements,
                      decay_vectors || info.shape.dims().size() > 1});
  return runs;
}

std::vector<ParameterRun> decay_runs(const Model& model, bool decay_vectors) {
  std::vector<ParameterRun> runs;
  for (const ParameterRun& run : parameter_runs(model, decay_vectors)) {
    if (!runs.empty() && runs.back().decays == run.decays)
      runs.back().end = run.end;
    else
      runs.push_back(run);
  }
  return runs;
}

std::vector<StatisticRun> statistic_runs(const Model& model) {
  std::vector<StatisticRun> runs;
  for (const ParameterInfo& info : model.parameters()) {
    if (info.kind != ParameterKind::statistic) continue;
    const std::size_t end = info.offset + info.elements;
    if (!runs.empty() && runs.back().momentum == info.momentum)
      runs.back().end = end;
    else
      runs.push_back({info.offset, end, info.momentum});
  }
  return runs;
}

}  // namespace troupe::kernels
