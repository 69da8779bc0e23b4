#include "bench/all_reduce_worker.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include <caf/all.hpp>
#include <fmt/format.h>
#include <sys/prctl.h>

#include "actors/collective/all_reduce.hpp"
#include "actors/collective/reducer.hpp"
#include "bench/peers/all_reduce_measure.hpp"
#include "runtime/remoting/caf_error.hpp"
#include "runtime/remoting/remoting.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::bench {
namespace {

constexpr auto kLimit = std::chrono::seconds(60);
constexpr auto kName = "all_reduce";

struct Place {
  NodeId node;
  transport::Address address;
};

std::filesystem::path file_of(const WorkerOptions& options, int rank, std::string_view what) {
  return std::filesystem::path(options.directory) / fmt::format("{}{}", what, rank);
}

/// Leaves `text` as this worker's file and waits until all have left theirs.
Status wait_for_all(const WorkerOptions& options, std::string_view what,
                    const std::string& text = {}) {
  const auto mine = file_of(options, options.rank, what);
  std::ofstream(mine.string() + ".new") << text << '\n';
  std::filesystem::rename(mine.string() + ".new", mine);
  const auto until = std::chrono::steady_clock::now() + kLimit;
  for (int rank = 0; rank < options.ranks; ++rank)
    while (!std::filesystem::exists(file_of(options, rank, what))) {
      if (std::chrono::steady_clock::now() > until)
        return {Code::deadline_exceeded, fmt::format("rank {} is not \"{}\"", rank, what)};
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  return {};
}

/// The places of all workers, in rank order.
Result<std::vector<Place>> meet(const WorkerOptions& options, NodeId node,
                                const transport::Address& address) {
  TROUPE_TRY(wait_for_all(options, "place", to_string(node) + ' ' + to_string(address)));
  std::vector<Place> places;
  for (int rank = 0; rank < options.ranks; ++rank) {
    std::ifstream in(file_of(options, rank, "place"));
    std::string id, at;
    in >> id >> at;
    TROUPE_ASSIGN(const auto other, NodeId::parse(id));
    TROUPE_ASSIGN(const auto where, transport::Address::parse(at));
    places.push_back({other, where});
  }
  return places;
}

/// Runs all-reduces one after the other and answers when the last is done.
class Driver final : public caf::event_based_actor {
public:
  Driver(caf::actor_config& config, caf::actor reducer)
      : caf::event_based_actor(config), reducer_(std::move(reducer)) {}

protected:
  caf::behavior make_behavior() override {
    return {[this](collective::AllReduce& x, int times) -> caf::result<collective::AllReduced> {
      values_ = std::move(x.values);
      left_ = times;
      promise_ = make_response_promise<collective::AllReduced>();
      next();
      return promise_;
    }};
  }

private:
  void next() {
    --left_;
    request(reducer_, kLimit, collective::AllReduce{values_})
        .then(
            [this](collective::AllReduced& x) {
              if (left_ > 0) return next();
              values_ = Buffer{};
              promise_.deliver(std::move(x));
            },
            [this](caf::error& e) { promise_.deliver(std::move(e)); });
  }

  caf::actor reducer_;
  Buffer values_;
  int left_ = 0;
  caf::typed_response_promise<collective::AllReduced> promise_;
};

class Worker {
public:
  explicit Worker(const WorkerOptions& options) : options_(options) {}

  Status run() {
    TROUPE_TRY(connect());
    for (const std::size_t bytes : options_.sizes) TROUPE_TRY(measure_size(bytes));
    // All must have all sums before the first goes: who misses a member gives up what it waits for.
    TROUPE_TRY(wait_for_all(options_, "done"));
    for (const auto& actor : {driver_, reducer_})
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    remoting_->stop();
    transport_->stop();
    return failed_;
  }

private:
  Status connect() {
    transport::Options wire;
    wire.node = NodeId::random();
    wire.name = fmt::format("rank-{}", options_.rank);
    wire.shared_memory = options_.shared_memory;
    wire.spin = spin();
    wire.max_queued_bytes = std::size_t{2} << 30;
    TROUPE_ASSIGN(transport_, transport::make_ucx_transport(wire));
    remoting::Options actors;
    actors.node = wire.node;
    actors.threads = 1;
    actors.configure = [](caf::actor_system_config& config) {
      collective::add_message_types(config);
    };
    TROUPE_ASSIGN(remoting_, remoting::make_remoting(actors, *transport_));
    TROUPE_TRY(transport_->start());
    TROUPE_ASSIGN(const auto address, transport_->listen({"127.0.0.1", 0}));
    reducer_ = collective::spawn_all_reduce(remoting_->system(), pool_);
    TROUPE_TRY(remoting_->register_name(kName, reducer_));

    TROUPE_ASSIGN(const auto places, meet(options_, wire.node, address));
    remoting_->set_resolver([places](NodeId node) -> std::optional<transport::Address> {
      for (const Place& place : places)
        if (place.node == node) return place.address;
      return std::nullopt;
    });
    collective::Group group{{}, static_cast<std::uint32_t>(options_.rank), options_.tuning};
    for (int rank = 0; rank < options_.ranks; ++rank) {
      if (rank == options_.rank) {
        group.members.push_back(reducer_);
        continue;
      }
      TROUPE_ASSIGN(auto other,
                    remoting_->lookup(places[static_cast<std::size_t>(rank)].node, kName, kLimit));
      group.members.push_back(std::move(other));
    }
    caf::anon_send(reducer_, std::move(group));
    self_ = std::make_unique<caf::scoped_actor>(remoting_->system());
    driver_ = remoting_->system().spawn<Driver>(reducer_);
    TROUPE_ASSIGN(barrier_, Buffer::allocate(sizeof(float)));
    *reinterpret_cast<float*>(barrier_.data()) = 0;
    return {};
  }

  /// Who spins on a core that another process needs makes both wait.
  Duration spin() const {
    if (options_.spin_us >= 0) return std::chrono::microseconds(options_.spin_us);
    const bool own_core =
        static_cast<unsigned>(options_.ranks) <= std::thread::hardware_concurrency();
    return own_core ? transport::Options{}.spin : Duration::zero();
  }

  Buffer one_run(const Buffer& values, int times) {
    Buffer sum;
    (*self_)
        ->request(driver_, std::chrono::seconds(300), collective::AllReduce{values}, times)
        .receive([&](collective::AllReduced& x) { sum = std::move(x.sum); },
                 [&](caf::error& e) { failed_ = remoting::from_caf(e); });
    return sum;
  }

  Status measure_size(std::size_t bytes) {
    TROUPE_ASSIGN(Buffer in, Buffer::allocate(bytes));
    fill_input(reinterpret_cast<float*>(in.data()), bytes / sizeof(float), options_.rank);
    Buffer sum;
    const auto run = [&](int times) {
      sum = Buffer{};
      sum = one_run(in, times);
      if (!failed_.ok()) sum = in;  // compared and found wrong; the error is what counts
      return reinterpret_cast<const float*>(sum.data());
    };
    const auto barrier = [&] { one_run(barrier_, 1); };
    const auto result =
        measure({bytes, reinterpret_cast<const float*>(in.data()), run, barrier}, options_.ranks,
                options_.samples, options_.shared_memory ? "shared memory" : "tcp");
    TROUPE_TRY(failed_);
    if (options_.rank == 0) print(stdout, result);
    return {};
  }

  const WorkerOptions& options_;
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<remoting::Remoting> remoting_;
  std::shared_ptr<BufferPool> pool_ =
      std::make_shared<BufferPool>(BufferPool::Options{std::size_t{2} << 30, SIZE_MAX});
  std::unique_ptr<caf::scoped_actor> self_;
  caf::actor reducer_;
  caf::actor driver_;
  Buffer barrier_;
  Status failed_;
};

}  // namespace

int run_worker(const WorkerOptions& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing is left when the benchmark is stopped
  const Status status = Worker(options).run();
  if (status.ok()) return 0;
  fmt::print(stderr, "all_reduce_bench, rank {}: {}\n", options.rank, to_string(status.error()));
  return 1;
}

}  // namespace troupe::bench
