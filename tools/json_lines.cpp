#include "tools/json_lines.hpp"

#include <nlohmann/json.hpp>

namespace troupe::tool {
namespace {

void put(std::FILE* out, const nlohmann::json& event) {
  // Bytes that are not UTF-8 (a path) are replaced, not thrown over.
  const auto text = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::fprintf(out, "%s\n", text.c_str());
  std::fflush(out);
}

}  // namespace

double JsonLines::seconds() const {
  return std::chrono::duration<double>(clock_.now() - started_at_).count();
}

void JsonLines::on_started(const train::JobStarted& x) {
  put(out_, {{"event", "started"},
             {"seconds", seconds()},
             {"job", x.job},
             {"name", x.name},
             {"ranks", x.ranks},
             {"nodes", x.nodes},
             {"epochs", x.epochs},
             {"steps_per_epoch", x.steps_per_epoch},
             {"first_step", x.first_step},
             {"global_batch", x.global_batch},
             {"parameters", x.parameters}});
}

void JsonLines::on_step(const train::StepFinished& x) {
  put(out_, {{"event", "step"},
             {"seconds", seconds()},
             {"step", x.step},
             {"loss", x.loss},
             {"accuracy", x.accuracy},
             {"step_seconds", x.seconds},
             {"skipped", x.skipped}});
}

void JsonLines::on_epoch(const train::EpochFinished& x) {
  put(out_, {{"event", "epoch"},
             {"seconds", seconds()},
             {"epoch", x.epoch},
             {"test_loss", x.test_loss},
             {"test_accuracy", x.test_accuracy},
             {"test_samples", x.test_samples}});
}

void JsonLines::on_generation(const train::GenerationBegun& x) {
  put(out_, {{"event", "generation"},
             {"seconds", seconds()},
             {"generation", x.generation},
             {"step", x.step},
             {"nodes", x.nodes},
             {"reason", x.reason},
             {"halt_seconds", x.halt_seconds},
             {"place_seconds", x.place_seconds},
             {"copy_seconds", x.copy_seconds}});
}

void JsonLines::on_checkpoint(const train::CheckpointWritten& x) {
  put(out_, {{"event", "checkpoint"}, {"seconds", seconds()}, {"step", x.step}, {"path", x.path}});
}

void JsonLines::on_notice(const train::Notice& x) {
  put(out_, {{"event", "notice"}, {"seconds", seconds()}, {"text", x.text}});
}

void JsonLines::on_ended(const train::JobEnded& x) {
  put(out_, {{"event", "ended"},
             {"seconds", seconds()},
             {"code", to_string(static_cast<Code>(x.code))},
             {"message", x.message},
             {"steps", x.steps},
             {"path", x.path},
             {"sha256", x.sha256}});
}

}  // namespace troupe::tool
