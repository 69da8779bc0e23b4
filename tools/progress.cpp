#include "tools/progress.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::tool {
namespace {

constexpr int kBarWidth = 24;
constexpr Duration kRedraw = std::chrono::milliseconds(80);

double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

std::string duration_text(double total) {
  const auto s = static_cast<std::uint64_t>(std::max(0.0, total) + 0.5);
  if (s >= 3600) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  if (s >= 60) return fmt::format("{}m{:02}s", s / 60, s % 60);
  return fmt::format("{}s", s);
}

void Progress::line(const std::string& text) {
  if (bar_shown_) std::fputs("\r\x1b[K", options_.out);
  bar_shown_ = false;
  std::fprintf(options_.out, "%s\n", text.c_str());
  std::fflush(options_.out);
}

void Progress::draw(const std::string& text) {
  std::fprintf(options_.out, "\r\x1b[K%s", text.c_str());
  std::fflush(options_.out);
  bar_shown_ = true;
}

double Progress::samples_per_second(std::uint64_t steps_done) const {
  const double elapsed = seconds(clock_.now() - started_at_);
  const auto steps = static_cast<double>(steps_done - std::min(steps_done, job_.first_step));
  return elapsed > 0 ? steps * static_cast<double>(job_.global_batch) / elapsed : 0;
}

void Progress::on_started(const train::JobStarted& started) {
  job_ = started;
  started_at_ = drawn_at_ = clock_.now();
  line(
      fmt::format("job '{}': {} ranks on {} node{}, {} parameters, {} epochs of {} steps, batch {}",
                  job_.name, job_.ranks, job_.nodes, job_.nodes == 1 ? "" : "s", job_.parameters,
                  job_.epochs, job_.steps_per_epoch, job_.global_batch));
  if (job_.first_step > 0) line(fmt::format("resumed after step {}", job_.first_step));
}

std::string Progress::position(const train::StepFinished& step) const {
  const std::uint64_t done = step.step + 1;
  const std::uint64_t per_epoch = std::max<std::uint64_t>(1, job_.steps_per_epoch);
  const std::uint64_t left = per_epoch * job_.epochs - std::min(done, per_epoch * job_.epochs);
  const double rate = samples_per_second(done);
  const double eta = rate > 0 ? static_cast<double>(left * job_.global_batch) / rate : 0;
  return fmt::format("epoch {}/{}  step {}/{}  loss {:.4f}  {:.0f} samples/s  ETA {}",
                     step.step / per_epoch + 1, job_.epochs, done, per_epoch * job_.epochs,
                     step.loss, rate, duration_text(eta));
}

void Progress::on_step(const train::StepFinished& step) {
  const std::uint64_t done = step.step + 1;
  const std::uint64_t total = job_.steps_per_epoch * job_.epochs;
  if (!options_.terminal) {
    if (done % std::max<std::uint64_t>(1, options_.log_every) == 0 || done == total)
      line(position(step));
    return;
  }
  if (clock_.now() - drawn_at_ < kRedraw && done != total) return;
  drawn_at_ = clock_.now();
  const auto filled =
      total == 0 ? 0 : static_cast<int>(done * static_cast<std::uint64_t>(kBarWidth) / total);
  draw(fmt::format("[{:#<{}}{:.<{}}] {}", "", filled, "", kBarWidth - filled, position(step)));
}

void Progress::on_epoch(const train::EpochFinished& epoch) {
  line(fmt::format("epoch {}/{}: test accuracy {:.2f}%, test loss {:.4f} ({} labels)",
                   epoch.epoch + 1, job_.epochs, 100 * epoch.test_accuracy, epoch.test_loss,
                   epoch.test_samples));
}

void Progress::on_checkpoint(const train::CheckpointWritten& checkpoint) {
  if (!options_.terminal)
    line(fmt::format("checkpoint after step {}: {}", checkpoint.step, checkpoint.path));
}

void Progress::on_notice(const train::Notice& notice) {
  line(notice.text);
}

void Progress::on_ended(const train::JobEnded& ended) {
  finished_ = ended.code == static_cast<std::uint16_t>(Code::ok);
  if (finished_) {
    line(fmt::format("done: {} steps in {}, {:.0f} samples/s", ended.steps,
                     duration_text(seconds(clock_.now() - started_at_)),
                     samples_per_second(ended.steps)));
    line(fmt::format("final weights: {}", ended.path));
    line(fmt::format("sha256: {}", ended.sha256));
  } else {
    line(ended.steps == 0 ? "stopped before the first step was done"
                          : fmt::format("stopped after step {}", ended.steps));
  }
}

}  // namespace troupe::tool
