#include <algorithm>
#include <csignal>
#include <optional>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "actors/config/job_config.hpp"
#include "tools/chaos_cluster.hpp"
#include "tools/chaos_timeline.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

namespace troupe::tool {
namespace {

using Clock = ChaosTimeline::Clock;
using namespace std::chrono_literals;

struct Options {
  NodeOptions node;
  std::string job;
  std::vector<std::string> overrides;
  std::size_t nodes = 4;
  std::size_t events = 20;
  std::uint64_t seed = 1;
};

std::string ms(double seconds) {
  return fmt::format("{:.0f}", 1e3 * seconds);
}

/// Does to a cluster what the seed says.
class Disturber {
public:
  Disturber(ChaosCluster& cluster, std::size_t wanted, std::uint64_t seed)
      : cluster_(cluster), wanted_(wanted), random_(seed) {}

  enum class Kind { kill, pause, drain, join, head };

  Kind choose() {
    if (cluster_.nodes().size() <= 1) return Kind::join;
    const bool many = cluster_.nodes().size() >= wanted_ + 2;
    switch (random_() % (many ? 4 : 5)) {
      case 0:
        return Kind::kill;
      case 1:
        return Kind::pause;
      case 2:
        return Kind::drain;
      case 3:
        return Kind::head;
      default:
        return Kind::join;
    }
  }

  Result<std::string> act(Kind kind) {
    for (const pid_t pid : std::exchange(paused_, {})) cluster_.signal(pid, SIGCONT, true);
    switch (kind) {
      case Kind::kill:
        return to_node(SIGKILL, "kill -9 of");
      case Kind::drain:
        return to_node(SIGTERM, "drain of");
      case Kind::pause: {
        auto text = to_node(SIGSTOP, "pause of");
        paused_.push_back(last_);
        return text;
      }
      case Kind::join:
        TROUPE_TRY(cluster_.add_node());
        return fmt::format("join of {}", cluster_.nodes().back());
      case Kind::head:
        break;
    }
    const auto text = fmt::format("kill -9 of head {}", cluster_.head());
    cluster_.kill_head();
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 1000));
    TROUPE_TRY(cluster_.start_head());
    return text;
  }

private:
  std::string to_node(int number, const char* what) {
    last_ = cluster_.nodes()[random_() % cluster_.nodes().size()];
    cluster_.signal(last_, number, true);
    return fmt::format("{} {}", what, last_);
  }

  ChaosCluster& cluster_;
  const std::size_t wanted_;
  std::mt19937_64 random_;
  std::vector<pid_t> paused_;
  pid_t last_ = 0;
};

void disturb(const Options& options, ChaosCluster& cluster, ChaosTimeline& timeline) {
  Disturber chaos(cluster, options.nodes, options.seed);
  for (std::size_t i = 0; i < options.events && timeline.wait_for_progress(i, options.events);
       ++i) {
    const auto kind = chaos.choose();
    timeline.begin_event(kind != Disturber::Kind::head);
    const auto begin = Clock::now();
    const auto what = chaos.act(kind);
    if (!what.ok()) {
      std::printf("%s\n", what.error().message.c_str());
      continue;
    }
    const auto times = timeline.wait_for_recovery(15s);
    const auto after = [&](const std::optional<Clock::time_point>& time) {
      return time ? ms(std::chrono::duration<double>(*time - begin).count()) : std::string("-");
    };
    const auto& g = times.generation;
    std::printf("%-22s %8s %8s %8s %8s %8s %11s\n", what->c_str(), after(times.noticed).c_str(),
                g ? ms(g->halt_seconds).c_str() : "-", g ? ms(g->place_seconds).c_str() : "-",
                g ? ms(g->copy_seconds).c_str() : "-", after(times.goes_on).c_str(),
                after(times.first_step).c_str());
    std::fflush(stdout);
  }
}

/// One run of the job; with events if `disturbed`. The hash of its weights.
Result<std::string> run(const Options& options, const train::JobConfig& config, bool disturbed,
                        Signals& signals) {
  ChaosCluster cluster(config.checkpoint.directory, options.node);
  TROUPE_ASSIGN(auto client, cluster.start(options.nodes));
  ChaosTimeline timeline;
  const auto subscription =
      client.runtime->subscribe([&](const View&, const auto&) { timeline.on_view(); });
  TROUPE_ASSIGN(const auto job, client.ask<std::uint64_t>(train::SubmitJob{config.to_toml()}));
  const auto on_signal = signals.on_signal([&](int) { client.cancel(job); });
  std::thread disturber;
  if (disturbed) disturber = std::thread([&] { disturb(options, cluster, timeline); });
  const auto ended = client.follow(job, timeline);
  if (!ended.ok()) timeline.on_ended({});  // the disturber waits for it
  if (disturber.joinable()) disturber.join();
  client.runtime->unsubscribe(subscription);
  TROUPE_TRY(ended);
  if (ended->code != 0) return Error{static_cast<Code>(ended->code), ended->message};
  return ended->sha256;
}

Result<int> chaos(const Options& options, Signals& signals) {
  TROUPE_ASSIGN(auto config, train::load_job(options.job, options.overrides));
  config.checkpoint.directory = std::filesystem::absolute(config.checkpoint.directory / "chaos");
  std::printf("undisturbed, on %zu nodes\n", options.nodes);
  std::fflush(stdout);
  TROUPE_ASSIGN(const auto expected, run(options, config, false, signals));
  std::printf(
      "sha256: %s\n\nwith %zu events, seed %llu; ms: of what halting, placing and copying the "
      "state "
      "took,\nand after the event until it was noticed, the job went on, and had a step done\n",
      expected.c_str(), options.events, static_cast<unsigned long long>(options.seed));
  std::printf("%-22s %8s %8s %8s %8s %8s %11s\n", "EVENT", "NOTICED", "HALT", "PLACE", "COPY",
              "GOES ON", "FIRST STEP");
  std::fflush(stdout);
  TROUPE_ASSIGN(const auto disturbed, run(options, config, true, signals));
  std::printf("sha256: %s\n", disturbed.c_str());
  if (disturbed != expected)
    return Error{Code::internal,
                 "the weights differ from those of the undisturbed run: please "
                 "report it with the job file and the seed"};
  std::printf("the same weights\n");
  return kSuccess;
}

}  // namespace

void add_chaos(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand(
      "chaos",
      "Run a job while killing, pausing, draining and adding nodes and killing the head; compare "
      "its weights");
  auto options = std::make_shared<Options>();
  command->add_option("job", options->job, "job file (TOML)")->required();
  command->add_option("--nodes", options->nodes, "node processes at the beginning")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{64}));
  command->add_option("--events", options->events, "how many, spread over the job's steps")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{10000}));
  command->add_option("--seed", options->seed, "of what happens")->capture_default_str();
  command->add_option("--set", options->overrides, "override a key: --set optimizer.lr=0.1");
  options->node.add_common(*command);
  command->callback([&context, options] {
    context.run = [&context, options] {
      auto code = chaos(*options, context.signals);
      return code.ok() ? *code : fail(code.error());
    };
  });
}

}  // namespace troupe::tool
