#include "kernels/internal/loss.hpp"

#include <cstddef>

#include "kernels/cuda/internal/backend.hpp"
#include "kernels/cuda/internal/cuda_stream.hpp"
#include "kernels/cuda/internal/launch.hpp"
#include "kernels/cuda/internal/softmax_bodies.hpp"
#include "kernels/cuda/internal/vector_bodies.hpp"
#include "kernels/internal/backend.hpp"

namespace troupe::kernels::cuda {

namespace {

Status cross_entropies(CudaStream& stream, const LossPass& pass, std::size_t rows,
                       RowLoss* losses) {
  const LossOptions& options = pass.loss.options();
  const auto classes = static_cast<std::size_t>(pass.loss.outputs_per_label());
  const LossRows all{classes,
                     pass.outputs,
                     reinterpret_cast<const std::int32_t*>(pass.labels),
                     options.ignored_label.has_value(),
                     options.ignored_label.value_or(0),
                     options.label_smoothing,
                     pass.gradient,
                     losses};
  if (pass.loss.outputs_per_label() < kManyClasses)
    return for_each(stream.handle(), rows, SmallLoss{all});
  return for_each_row(stream.handle(), rows, WideLoss{all});
}

Status squared_errors(CudaStream& stream, const LossPass& pass, std::size_t rows, RowLoss* losses) {
  const auto width = static_cast<std::size_t>(pass.loss.outputs_per_label());
  return for_each_row(
      stream.handle(), rows,
      SquaredErrors{width, pass.outputs, reinterpret_cast<const float*>(pass.labels), pass.gradient,
                    losses});
}

}  // namespace

Status compute_loss(CudaStream& stream, const LossPass& pass) {
  const auto rows = static_cast<std::size_t>(pass.samples * pass.loss.labels_per_sample());
  TROUPE_ASSIGN(std::byte* const scratch, stream.scratch(rows * sizeof(RowLoss) + 1));
  auto* const losses = reinterpret_cast<RowLoss*>(scratch);
  switch (pass.loss.kind()) {
    case Loss::softmax_cross_entropy:
      TROUPE_TRY(cross_entropies(stream, pass, rows, losses));
      break;
    case Loss::mean_squared_error:
      TROUPE_TRY(squared_errors(stream, pass, rows, losses));
      break;
  }
  const std::size_t outputs = rows * static_cast<std::size_t>(pass.loss.outputs_per_label());
  if (pass.gradient != nullptr)
    TROUPE_TRY(for_each(stream.handle(), outputs, Scale{pass.gradient, pass.gradient_scale}));
  LossStats& stats = *pass.stats;  // the device's: only its places are taken
  return for_each(stream.handle(), 1,
                  LossTotal{losses, rows, &stats.loss_sum, &stats.correct, &stats.count});
}

}  // namespace troupe::kernels::cuda
