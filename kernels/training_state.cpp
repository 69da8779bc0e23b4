#include "kernels/training_state.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "kernels/internal/backend.hpp"
#include "runtime/base/check.hpp"

namespace troupe::kernels {

namespace {

// Of the gradient, that go up as one; and how many of them, as the host fills one meanwhile.
constexpr std::size_t kPieceFloats = std::size_t{1} << 18;
constexpr std::size_t kPieces = 4;

float* floats(Buffer& buffer) {
  return reinterpret_cast<float*>(buffer.data());
}

std::size_t end_of(std::span<const GradientRun> runs) {
  return runs.empty() ? 0 : runs.back().end();
}

}  // namespace

struct TrainingState::State {
  State(ComputeDevice the_device, std::unique_ptr<const Optimizer> the_optimizer)
      : device(std::move(the_device)), optimizer(std::move(the_optimizer)) {}

  Backend& backend() const { return device.backend(); }
  bool on_host() const { return backend().is_host(); }
  const Model& model() const { return optimizer->model(); }
  std::size_t bytes() const { return model().flat_size() * sizeof(float); }

  Status make(Contents initial);
  Status allocate();
  /// Brings the gradient to the device.
  Status send(std::span<const GradientRun> runs);
  Status update(const UpdateFactors& factors, std::span<const GradientRun> runs,
                float statistic_scale);
  Status write(const Buffer& from_parameters, std::span<const Buffer> from_state);
  Result<Parameters> bring(const Buffer& from) const;
  /// The same status, and of later calls if it is an error.
  Status keep(Status status) {
    if (!status.ok()) lost = status;
    return status;
  }

  const ComputeDevice device;
  const std::unique_ptr<const Optimizer> optimizer;
  // On the device.
  Buffer parameters;
  std::vector<Buffer> optimizer_state;
  std::vector<float*> state_floats;
  // Of another device than the host.
  struct Piece {
    Buffer staging;
    std::unique_ptr<Event> sent;
  };
  std::vector<Piece> pieces;  ///< of a gradient, on its way
  Buffer gradient;
  std::unique_ptr<Event> written;
  Status lost;
  std::unique_ptr<Stream> stream;  ///< the first to go: it waits for what works on all of these
};

Status TrainingState::State::make(Contents initial) {
  TROUPE_ASSIGN(stream, backend().make_stream());
  TROUPE_ASSIGN(written, backend().make_event());
  parameters = initial.parameters.buffer();
  for (const Parameters& one : initial.optimizer_state) optimizer_state.push_back(one.buffer());
  const std::vector<Buffer> given = optimizer_state;
  if (!on_host()) TROUPE_TRY(allocate());
  for (Buffer& buffer : optimizer_state) state_floats.push_back(floats(buffer));
  return write(initial.parameters.buffer(), given);
}

Status TrainingState::State::allocate() {
  TROUPE_ASSIGN(parameters, backend().allocate(bytes()));
  for (Buffer& buffer : optimizer_state) {
    TROUPE_ASSIGN(buffer, backend().allocate(bytes()));
  }
  TROUPE_ASSIGN(gradient, backend().allocate(bytes()));
  pieces.resize(kPieces);
  for (Piece& piece : pieces) {
    TROUPE_ASSIGN(piece.staging,
                  backend().allocate_staging(std::min(kPieceFloats * sizeof(float), bytes())));
    TROUPE_ASSIGN(piece.sent, backend().make_event());
  }
  return {};
}

Status TrainingState::State::write(const Buffer& from_parameters,
                                   std::span<const Buffer> from_state) {
  const auto enqueue = [&]() -> Status {
    TROUPE_TRY(stream->copy(parameters.data(), from_parameters.data(), bytes()));
    for (std::size_t i = 0; i < from_state.size(); ++i)
      TROUPE_TRY(stream->copy(optimizer_state[i].data(), from_state[i].data(), bytes()));
    return stream->record(*written);
  };
  Status enqueued = enqueue();
  Status done = stream->synchronize();  // what is copied is the caller's again, whatever happened
  return enqueued.ok() ? std::move(done) : std::move(enqueued);
}

Status TrainingState::State::send(std::span<const GradientRun> runs) {
  std::size_t sent = 0;
  for (const GradientRun& run : runs)
    for (std::size_t at = 0; at < run.values.size(); at += kPieceFloats) {
      const auto values = run.values.subspan(at, std::min(kPieceFloats, run.values.size() - at));
      Piece& piece = pieces[sent++ % pieces.size()];
      TROUPE_TRY(piece.sent->synchronize());
      std::memcpy(piece.staging.data(), values.data(), values.size_bytes());
      TROUPE_TRY(stream->copy(floats(gradient) + run.begin + at, piece.staging.data(),
                              values.size_bytes()));
      TROUPE_TRY(stream->record(*piece.sent));
    }
  return {};
}

Status TrainingState::State::update(const UpdateFactors& factors, std::span<const GradientRun> runs,
                                    float statistic_scale) {
  std::array<GradientRun, 1> there;
  if (!on_host()) {
    TROUPE_TRY(send(runs));
    there[0].values = {floats(gradient), end_of(runs)};
    runs = there;
  }
  TROUPE_TRY(backend().update(
      *stream, {*optimizer, factors, runs, statistic_scale, floats(parameters), state_floats}));
  return stream->record(*written);
}

Result<Parameters> TrainingState::State::bring(const Buffer& from) const {
  if (on_host()) return Parameters::in(model(), from);
  TROUPE_ASSIGN(Buffer to, Buffer::allocate(bytes()));
  TROUPE_TRY(stream->copy(to.data(), from.data(), bytes()));
  TROUPE_TRY(stream->synchronize());
  return Parameters::in(model(), std::move(to));
}

TrainingState::TrainingState(std::unique_ptr<State> state) : state_(std::move(state)) {}
TrainingState::TrainingState(TrainingState&&) noexcept = default;
TrainingState& TrainingState::operator=(TrainingState&&) noexcept = default;
TrainingState::~TrainingState() = default;

Status TrainingState::reserve(const ComputeDevice& device, const Optimizer& optimizer) {
  if (device.kind() == Device::cpu) return {};
  const std::size_t bytes = optimizer.model().flat_size() * sizeof(float);
  // The weights, the state, and the gradient of an update.
  std::vector<Buffer> buffers(optimizer.state_names().size() + 2);
  for (Buffer& buffer : buffers) {
    TROUPE_ASSIGN(buffer, device.allocate(bytes));
  }
  return {};
}

Result<TrainingState> TrainingState::create(ComputeDevice device,
                                            std::unique_ptr<const Optimizer> optimizer,
                                            Contents initial) {
  const auto fits = [&](const Parameters& x) { return x.model().same_layout(optimizer->model()); };
  if (!fits(initial.parameters) || !std::ranges::all_of(initial.optimizer_state, fits) ||
      initial.optimizer_state.size() != optimizer->state_names().size())
    return Error{Code::shape_mismatch,
                 fmt::format("weights of model '{}' and {} buffers of optimizer state given to an "
                             "optimizer of model '{}' with {}",
                             initial.parameters.model().name(), initial.optimizer_state.size(),
                             optimizer->model().name(), optimizer->state_names().size())};
  auto state = std::make_unique<State>(std::move(device), std::move(optimizer));
  TROUPE_TRY(state->make(std::move(initial)));
  return TrainingState(std::move(state));
}

Weights TrainingState::weights() const {
  const State& state = *state_;
  const auto* const values = reinterpret_cast<const float*>(state.parameters.data());
  if (state.on_host()) return {state.model(), values, nullptr, nullptr};
  return {state.model(), values, &state.backend(), state.written.get()};
}

Status TrainingState::update(const UpdateFactors& factors, std::span<const GradientRun> gradient,
                             float statistic_scale) {
  State& state = *state_;
  TROUPE_TRY(state.lost);
  TROUPE_CHECK(is_whole_gradient(model(), gradient) && end_of(gradient) <= model().flat_size(),
               "an update by what is no whole gradient");
  return state.keep(state.update(factors, gradient, statistic_scale));
}

Result<TrainingState::Contents> TrainingState::contents() const {
  const State& state = *state_;
  TROUPE_TRY(state.lost);
  TROUPE_ASSIGN(Parameters parameters, state.bring(state.parameters));
  Contents contents{std::move(parameters), {}};
  for (const Buffer& buffer : state.optimizer_state) {
    TROUPE_ASSIGN(Parameters one, state.bring(buffer));
    contents.optimizer_state.push_back(std::move(one));
  }
  return contents;
}

Result<TrainingState::Contents> TrainingState::copy() const {
  TROUPE_ASSIGN(Contents contents, this->contents());
  if (!state_->on_host()) return contents;
  TROUPE_ASSIGN(contents.parameters, contents.parameters.clone());
  for (Parameters& one : contents.optimizer_state) {
    TROUPE_ASSIGN(one, one.clone());
  }
  return contents;
}

Status TrainingState::write(const Buffer& parameters, std::span<const Buffer> optimizer_state) {
  State& state = *state_;
  const auto too_small = [&](const Buffer& x) { return x.size() < state.bytes(); };
  if (too_small(parameters) || optimizer_state.size() != state.optimizer_state.size() ||
      std::ranges::any_of(optimizer_state, too_small))
    return {Code::shape_mismatch,
            fmt::format("weights of {} bytes with {} buffers of optimizer state do not fit model "
                        "'{}', which has {} bytes and {} buffers",
                        parameters.size(), optimizer_state.size(), model().name(), state.bytes(),
                        state.optimizer_state.size())};
  TROUPE_TRY(state.keep(state.write(parameters, optimizer_state)));
  state.lost = {};
  return {};
}

const Model& TrainingState::model() const noexcept {
  return state_->model();
}
const Optimizer& TrainingState::optimizer() const noexcept {
  return *state_->optimizer;
}

}  // namespace troupe::kernels
