// All-reduce of f32 among processes of this machine: ours over shared memory and over TCP, Gloo
// over TCP and MPI, measured by the same code in the same run.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/all_reduce_worker.hpp"
#include "bench/peers/all_reduce_measure.hpp"

extern char** environ;

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

struct Settings {
  std::string sizes = "4096,65536,1048576,16777216,67108864,268435456";
  std::vector<int> processes{2, 4};
  int samples = 7;
  std::vector<std::string> only;  ///< contenders; all if empty
  bool json = false;
  int spin_us = -1;
  troupe::collective::Tuning tuning;
};

/// A fresh directory, removed with all in it.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "troupe-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

private:
  fs::path path_;
};

/// Starts `arguments` with stdout in `output`; returns the process id, -1 if it cannot.
pid_t start(const std::vector<std::string>& arguments, const fs::path& output,
            const std::map<std::string, std::string>& environment = {}) {
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string variable(*at);
    if (environment.count(variable.substr(0, variable.find('='))) == 0)
      variables.push_back(variable);
  }
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (auto& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  pid_t pid = -1;
  if (posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), envp.data()) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

bool all_succeed(const std::vector<pid_t>& pids) {
  bool good = true;
  for (const pid_t pid : pids) {
    int status = -1;
    good = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0 && good;
  }
  return good;
}

/// The fastest correct result for each size.
std::map<std::size_t, Json> read_results(const fs::path& path) {
  std::map<std::size_t, Json> best;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] != '{') continue;
    const Json result = Json::parse(line, nullptr, false);
    if (result.is_discarded()) continue;
    auto& place = best[result["bytes"]];
    if (place.is_null() || result["median_s"] < place["median_s"]) place = result;
  }
  return best;
}

class Bench {
public:
  Bench(Settings settings, std::string program)
      : settings_(std::move(settings)), program_(std::move(program)) {}

  int run() {
    bool good = true;
    for (const int processes : settings_.processes) {
      std::map<std::string, std::map<std::size_t, Json>> results;
      for (const auto* name : {"troupe-shm", "troupe-tcp", "gloo", "mpi"}) {
        if (!wanted(name)) continue;
        TemporaryDirectory directory;
        const bool finished = all_succeed(start_all(name, processes, directory.path()));
        results[name] = read_results(directory.path() / "output0");
        if (!finished) {
          fmt::print(stderr, "{} with {} processes failed\n", name, processes);
          good = false;
        }
      }
      good = report(processes, results) && good;
    }
    if (settings_.json) fmt::print("{}\n", json_.dump(2));
    return good ? 0 : 1;
  }

private:
  bool wanted(const std::string& name) const {
    if (peer_path(name).empty() && name.rfind("troupe", 0) != 0) return false;
    return settings_.only.empty() ||
           std::find(settings_.only.begin(), settings_.only.end(), name) != settings_.only.end();
  }

  /// Peers that were found at configure time lie beside this program.
  std::string peer_path(const std::string& name) const {
    const auto path = fs::path(program_).parent_path() / (name + "_all_reduce");
    return fs::exists(path) ? path.string() : "";
  }

  std::vector<pid_t> start_all(const std::string& name, int processes, const fs::path& directory) {
    const auto output = [&](int rank) { return directory / fmt::format("output{}", rank); };
    const auto samples = std::to_string(settings_.samples);
    if (name == "mpi")
      return {start({"mpirun", "--oversubscribe", "--allow-run-as-root", "-n",
                     std::to_string(processes), peer_path(name), settings_.sizes, samples},
                    output(0))};
    std::vector<pid_t> pids;
    for (int rank = 0; rank < processes; ++rank) {
      const auto r = std::to_string(rank), n = std::to_string(processes);
      if (name == "gloo") {
        pids.push_back(start({peer_path(name), r, n, directory.string(), settings_.sizes, samples},
                             output(rank)));
        continue;
      }
      const bool tcp = name == "troupe-tcp";
      const auto& tuning = settings_.tuning;
      std::map<std::string, std::string> environment;
      if (tcp) environment["UCX_TLS"] = "tcp,self";
      pids.push_back(start({program_,
                            "--worker",
                            r,
                            "--ranks",
                            n,
                            "--directory",
                            directory.string(),
                            "--sizes",
                            settings_.sizes,
                            "--samples",
                            samples,
                            "--shared-memory",
                            tcp ? "0" : "1",
                            "--chunk",
                            std::to_string(tuning.chunk_bytes),
                            "--whole",
                            std::to_string(tuning.whole_bytes),
                            "--direct",
                            std::to_string(tuning.direct_bytes),
                            "--spin",
                            std::to_string(settings_.spin_us),
                            "--pair",
                            tuning.direct_pair ? "1" : "0"},
                           output(rank), environment));
    }
    return pids;
  }

  bool report(int processes, const std::map<std::string, std::map<std::size_t, Json>>& results) {
    bool good = true;
    fmt::print(settings_.json ? stderr : stdout,
               "\nall-reduce of f32, {} processes, median (GB/s of payload)\n{:>10}", processes,
               "bytes");
    std::set<std::size_t> sizes;
    for (const auto& [name, by_size] : results) {
      fmt::print(out(), "  {:>22}", name);
      for (const auto& [bytes, result] : by_size) sizes.insert(bytes);
    }
    fmt::print(out(), "  {:>9}  {:>9}\n", "shm/gloo", "shm/mpi");
    for (const std::size_t bytes : sizes) {
      fmt::print(out(), "{:>10}", bytes);
      std::map<std::string, double> seconds;
      for (const auto& [name, by_size] : results) {
        const auto found = by_size.find(bytes);
        if (found == by_size.end()) {
          fmt::print(out(), "  {:>22}", "-");
          continue;
        }
        Json row = found->second;
        seconds[name] = row["median_s"];
        fmt::print(out(), "  {:>11.1f} us {:>7.3f}", seconds[name] * 1e6,
                   static_cast<double>(bytes) / seconds[name] * 1e-9);
        if (!row["correct"]) {
          fmt::print(out(), " WRONG");
          good = false;
        }
        row["contender"] = name;
        row["processes"] = processes;
        json_.push_back(std::move(row));
      }
      for (const auto* peer : {"gloo", "mpi"}) {
        const bool both = seconds.count(peer) > 0 && seconds.count("troupe-shm") > 0;
        fmt::print(out(), "  {:>9}",
                   both ? fmt::format("{:.2f}x", seconds[peer] / seconds["troupe-shm"]) : "-");
      }
      fmt::print(out(), "\n");
    }
    return good;
  }

  std::FILE* out() const { return settings_.json ? stderr : stdout; }

  Settings settings_;
  std::string program_;
  Json json_ = Json::array();
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("All-reduce against Gloo and MPI");
  Settings settings;
  troupe::bench::WorkerOptions worker;
  worker.rank = -1;
  app.add_option("--sizes", settings.sizes, "bytes, comma separated")->capture_default_str();
  app.add_option("--processes", settings.processes, "how many")->capture_default_str();
  app.add_option("--samples", settings.samples, "per size; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--only", settings.only, "contenders: troupe-shm, troupe-tcp, gloo, mpi");
  app.add_flag("--json", settings.json, "print JSON on stdout (the table goes to stderr)");
  app.add_option("--spin", settings.spin_us,
                 "of the transport, in microseconds; chosen by the number of cores if negative");
  app.add_option("--chunk", settings.tuning.chunk_bytes)->capture_default_str();
  app.add_option("--whole", settings.tuning.whole_bytes)->capture_default_str();
  app.add_option("--direct", settings.tuning.direct_bytes)->capture_default_str();
  app.add_option("--pair", settings.tuning.direct_pair)->capture_default_str();
  app.add_option("--worker", worker.rank)->group("");
  app.add_option("--ranks", worker.ranks)->group("");
  app.add_option("--directory", worker.directory)->group("");
  app.add_option("--shared-memory", worker.shared_memory)->group("");
  CLI11_PARSE(app, argc, argv);
  if (worker.rank >= 0) {
    worker.sizes = troupe::bench::parse_sizes(settings.sizes.c_str());
    worker.samples = settings.samples;
    worker.tuning = settings.tuning;
    worker.spin_us = settings.spin_us;
    return troupe::bench::run_worker(worker);
  }
  return Bench(settings, fs::read_symlink("/proc/self/exe").string()).run();
}
