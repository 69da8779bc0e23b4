#include <algorithm>
#include <atomic>
#include <csignal>
#include <optional>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "actors/config/job_config.hpp"
#include "actors/job/job_runner.hpp"
#include "runtime/base/mutex.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/local_cluster.hpp"

namespace troupe::tool {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  NodeOptions node;
  std::string job;
  std::vector<std::string> overrides;
  std::size_t nodes = 4;
  std::size_t events = 20;
  std::uint64_t seed = 1;
};

double ms(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// When what happened, for the thread that disturbs. Threads: any.
class Timeline final : public train::JobObserver {
public:
  void on_started(const train::JobStarted& x) override {
    MutexLock lock(mutex_);
    total_ = x.epochs * x.steps_per_epoch;
    changed_.notify_all();
  }
  void on_step(const train::StepFinished& x) override {
    MutexLock lock(mutex_);
    steps_ = x.step + 1;
    if (changes_ > 0 && !first_step_) first_step_ = Clock::now();
    changed_.notify_all();
  }
  void on_notice(const train::Notice& x) override {
    if (x.text.find("goes on") == std::string::npos) return;
    MutexLock lock(mutex_);
    ++changes_;
    changed_at_ = Clock::now();
    first_step_.reset();
    changed_.notify_all();
  }
  void on_ended(const train::JobEnded&) override {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  void on_departure() {
    MutexLock lock(mutex_);
    if (!departure_) departure_ = Clock::now();
  }

  /// False if the job ended first.
  bool wait_for_progress(std::size_t event, std::size_t events) {
    MutexLock lock(mutex_);
    while (!ended_ && (total_ == 0 || steps_ * (events + 1) < total_ * (event + 1)))
      changed_.wait(mutex_);
    return !ended_;
  }

  void begin_event() {
    MutexLock lock(mutex_);
    departure_.reset();
    first_step_.reset();
    changes_ = 0;
  }

  struct Times {
    std::optional<Clock::time_point> departure, change, first_step;
  };
  /// What followed begin_event(); empty members for what did not.
  Times wait_for_recovery(Clock::duration patience) {
    const auto until = Clock::now() + patience;
    MutexLock lock(mutex_);
    while (!ended_ && !first_step_)
      if (changed_.wait_until(mutex_, until) == std::cv_status::timeout) break;
    return {departure_, changes_ > 0 ? std::optional(changed_at_) : std::nullopt, first_step_};
  }

private:
  Mutex mutex_;
  CondVar changed_;
  std::uint64_t total_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t steps_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::size_t changes_ TROUPE_GUARDED_BY(mutex_) = 0;
  bool ended_ TROUPE_GUARDED_BY(mutex_) = false;
  Clock::time_point changed_at_ TROUPE_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> departure_ TROUPE_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> first_step_ TROUPE_GUARDED_BY(mutex_);
};

/// Does to a cluster's nodes what the seed says.
class Disturber {
public:
  Disturber(LocalCluster& cluster, std::size_t wanted, std::uint64_t seed)
      : cluster_(cluster), wanted_(wanted), random_(seed), living_(cluster.processes()) {}
  ~Disturber() {
    for (const pid_t pid : stopped_) ::kill(pid, SIGCONT);
  }

  /// What it did; the last kind changes nothing for the job.
  Result<std::string> act() {
    for (const pid_t pid : std::exchange(stopped_, {})) ::kill(pid, SIGCONT);
    const bool few = living_.size() <= 1;
    const bool many = living_.size() >= wanted_ + 2;
    switch (few ? 3 : random_() % (many ? 3 : 4)) {
      case 0:
        return signal(SIGKILL, "kill -9");
      case 1: {
        auto text = signal(SIGSTOP, "pause");
        stopped_.push_back(last_);
        return text;
      }
      case 2:
        return signal(SIGTERM, "leave");
      default:
        TROUPE_TRY(cluster_.add(1));
        living_.push_back(cluster_.processes().back());
        return fmt::format("join of {}", living_.back());
    }
  }

private:
  std::string signal(int number, const char* name) {
    const auto at = living_.begin() + static_cast<std::ptrdiff_t>(random_() % living_.size());
    last_ = *at;
    living_.erase(at);
    ::kill(last_, number);
    return fmt::format("{} of {}", name, last_);
  }

  LocalCluster& cluster_;
  const std::size_t wanted_;
  std::mt19937_64 random_;
  std::vector<pid_t> living_, stopped_;
  pid_t last_ = 0;
};

/// One run of the job; with events if `disturb`. The hash of its weights.
Result<std::string> run(const Options& options, train::JobConfig config, bool disturb,
                        Signals& signals) {
  TROUPE_ASSIGN(auto runtime_options, options.node.runtime_options());
  LocalCluster cluster;
  TROUPE_ASSIGN(auto head, cluster.start(std::move(runtime_options), options.nodes, 1));
  std::atomic<bool> interrupted = false;
  Timeline timeline;
  const auto subscription = head->subscribe([&](const View&, const auto& departures) {
    if (!departures.empty()) timeline.on_departure();
  });
  train::JobRunner runner(*head, std::move(config), {}, timeline);
  signals.on_signal([&](int) {
    interrupted = true;
    runner.cancel();
  });
  TROUPE_TRY(cluster.wait_for_nodes(*head, interrupted));
  std::thread disturber;
  if (disturb)
    disturber = std::thread([&] {
      Disturber chaos(cluster, options.nodes, options.seed);
      for (std::size_t i = 0; i < options.events && timeline.wait_for_progress(i, options.events);
           ++i) {
        timeline.begin_event();
        const auto begin = Clock::now();
        const auto what = chaos.act();
        if (!what.ok()) {
          std::printf("%-20s %s\n", "join", what.error().message.c_str());
          continue;
        }
        const auto times = timeline.wait_for_recovery(std::chrono::seconds(15));
        const auto after = [&](const std::optional<Clock::time_point>& time) {
          return time && *time > begin ? fmt::format("{:.0f}", ms(*time - begin))
                                       : std::string("-");
        };
        std::printf("%-20s %12s %12s %12s\n", what->c_str(), after(times.departure).c_str(),
                    after(times.change).c_str(), after(times.first_step).c_str());
        std::fflush(stdout);
      }
    });
  auto ended = runner.run();
  if (disturber.joinable()) disturber.join();
  signals.on_signal({});
  head->unsubscribe(subscription);
  head->stop();
  TROUPE_TRY(ended);
  return ended->sha256;
}

Result<int> chaos(const Options& options, Signals& signals) {
  TROUPE_ASSIGN(auto config, train::load_job(options.job, options.overrides));
  config.checkpoint.directory /= "chaos";
  std::printf("undisturbed, on %zu nodes\n", options.nodes);
  std::fflush(stdout);
  TROUPE_ASSIGN(const auto expected, run(options, config, false, signals));
  std::printf("sha256: %s\n\nwith %zu events, seed %llu; ms after each event\n", expected.c_str(),
              options.events, static_cast<unsigned long long>(options.seed));
  std::printf("%-20s %12s %12s %12s\n", "EVENT", "NOTICED", "GOES ON", "FIRST STEP");
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
      "chaos", "Run a job while killing, pausing, stopping and adding nodes; compare its weights");
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
