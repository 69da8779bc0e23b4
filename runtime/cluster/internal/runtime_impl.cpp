#include "runtime/cluster/internal/runtime_impl.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/cluster/internal/node.hpp"
#include "runtime/cluster/internal/process_watch.hpp"
#include "runtime/membership/codec.hpp"
#include "runtime/membership/message.hpp"

namespace troupe::cluster {
namespace {

constexpr std::uint32_t kMaxSlots = 65536;
constexpr std::size_t kMaxThreads = 4096;
/// Of the control store: the last view.
constexpr const char* kViewKey = "view";

/// What can be said of the options without trying them.
Status validate(const RuntimeOptions& options, const membership::Timing& timing) {
  TROUPE_TRY(timing.validate());
  const auto& host = options.listen.host;
  if (host.empty() || host == "0.0.0.0" || host == "::")
    return {Code::invalid_argument,
            fmt::format("'{}' is no address at which others can reach this node; listen at the "
                        "address of one interface",
                        host)};
  if (options.name.size() > membership::kMaxNameBytes)
    return {Code::invalid_argument, fmt::format("a name of {} bytes; {} at most",
                                                options.name.size(), membership::kMaxNameBytes)};
  if (options.slots > kMaxSlots)
    return {Code::invalid_argument,
            fmt::format("{} slots on one node; {} at most", options.slots, kMaxSlots)};
  if (options.threads > kMaxThreads)
    return {Code::invalid_argument,
            fmt::format("{} threads for actors; {} at most", options.threads, kMaxThreads)};
  if (options.join_timeout <= Duration::zero())
    return {Code::invalid_argument, "a join timeout of no time; give it some seconds"};
  return {};
}

Error stopped() {
  return {Code::failed_precondition, "this runtime was stopped; make a new one"};
}

}  // namespace

RuntimeImpl::RuntimeImpl(RuntimeOptions options) : options_(std::move(options)) {}

RuntimeImpl::~RuntimeImpl() {
  stop();
}

// Starting.

Status RuntimeImpl::open() {
  TROUPE_TRY(validate(options_, timing()));
  TROUPE_TRY(make_transports());
  remoting::Options remoting;
  remoting.node = id_;
  remoting.threads = options_.threads != 0 ? options_.threads
                                           : std::min<std::size_t>(options_.slots + 1, kMaxThreads);
  remoting.run_inline = options_.run_inline;
  remoting.configure = options_.configure;
  TROUPE_ASSIGN(remoting_, remoting::make_remoting(std::move(remoting), *actors_));
  remoting_->set_resolver([this](NodeId node) -> std::optional<transport::Address> {
    const auto view = board_.view();
    const Member* member = view && node != id_ ? view->find(node) : nullptr;
    return member != nullptr ? std::optional(member->address) : std::nullopt;
  });
  return {};
}

Status RuntimeImpl::make_transports() {
  transport::Options options;
  options.node = id_;
  options.name = options_.name;
  options.token = options_.token;
  options.connect_timeout = std::min(options.connect_timeout, options_.join_timeout);
  options.shared_memory = options_.shared_memory;
  options.host_silence = std::max(options.host_silence, options_.heartbeat_limit);
  TROUPE_ASSIGN(actors_, transport::make_ucx_transport(options));

  // Small, rare messages that must not wait behind anything.
  options.shared_memory = false;
  options.tls = "tcp";
  options.run_inline = false;
  options.spin = Duration::zero();
  options.max_message_bytes = membership::kMaxMessageBytes;
  options.max_segment_bytes = 0;
  options.thread_name = "troupe.life";
  TROUPE_ASSIGN(liveness_, transport::make_ucx_transport(options));
  return {};
}

/// Starts the transports, once all of their handlers are there.
Status RuntimeImpl::listen() {
  board_.start(id_, [this](const Departure& departure) {
    remoting_->node_lost(departure.node, departure.reason);
  });
  TROUPE_TRY(liveness_->start());
  TROUPE_TRY(actors_->start());
  TROUPE_ASSIGN(self_.address, actors_->listen(options_.listen));
  TROUPE_ASSIGN(self_.liveness, liveness_->listen({options_.listen.host, 0}));
  self_.node = id_;
  self_.name = options_.name;
  self_.host = host_identity();
  self_.process = static_cast<std::uint32_t>(::getpid());
  self_.slots = options_.slots;
  return {};
}

Status RuntimeImpl::lead() {
  is_head_ = true;
  TROUPE_ASSIGN(auto options, take_lead());
  auto head = std::make_unique<Head>(*actors_, *liveness_, clock_, events());
  auto& leading = *head;
  participant_ = std::move(head);
  TROUPE_TRY(listen());
  began_ = true;
  options.self = self_;
  leading.lead(std::move(options));
  deposer_->set(&leading);
  return board_.wait_until_in_or_out(after(options_.join_timeout));
}

/// Becomes the store's leader, and knows then what the head before had.
Result<membership::HeadMachine::Options> RuntimeImpl::take_lead() {
  membership::HeadMachine::Options options;
  options.timing = timing();
  if (!options_.store) return options;
  TROUPE_ASSIGN(
      term_, options_.store->lead(options_.lead_timeout, [deposer = deposer_](const Error& reason) {
        deposer->depose(reason);
      }));
  options.term = term_;
  TROUPE_ASSIGN(const auto values, options_.store->read());
  const auto found = values.find(kViewKey);
  if (found == values.end()) return options;
  const auto message = membership::decode(std::as_bytes(std::span(found->second)));
  const auto* joined = message.ok() ? std::get_if<membership::Joined>(&*message) : nullptr;
  if (joined == nullptr)
    return Error{Code::corrupt_data,
                 fmt::format("the control store's '{}' is no view of a cluster ({}); remove it to "
                             "start a new one",
                             kViewKey, message.ok() ? "another message" : message.error().message)};
  options.last = joined->view;
  return options;
}

/// For the head that comes after this one.
void RuntimeImpl::keep(const membership::SharedView& view) {
  if (!is_head_ || !options_.store) return;
  const auto bytes = membership::encode(membership::Joined{view});
  options_.store->put(kViewKey, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Status RuntimeImpl::join(const transport::Address& head) {
  auto node = std::make_unique<Node>(*actors_, *liveness_, clock_, events());
  auto& joining = *node;
  participant_ = std::move(node);
  TROUPE_TRY(listen());
  began_ = true;
  joining.join(
      {self_, head, timing(), options_.join_timeout, options_.wait_for_head, options_.other_heads});
  // The machine has the deadline, and says what it waited for; the second is for its answer.
  TROUPE_TRY(board_.wait_until_in_or_out(after(options_.join_timeout + std::chrono::seconds(1))));
  if (const auto out = board_.out()) return *out;
  return {};
}

membership::Timing RuntimeImpl::timing() const {
  return {options_.heartbeat_period, options_.heartbeat_limit,
          options_.store ? options_.headless : Duration::zero()};
}

TimePoint RuntimeImpl::after(Duration timeout) const {
  // Far enough for all, and without overflow.
  return clock_.now() + std::min(timeout, Duration(std::chrono::hours(24 * 365)));
}

// Membership.

void RuntimeImpl::on_view(membership::SharedView view, std::vector<Departure> departures) {
  keep(view);
  board_.publish(std::move(view), std::move(departures));
}

void RuntimeImpl::on_out(const Error& reason) {
  board_.set_out(reason);
}

View RuntimeImpl::view() const {
  const auto view = board_.view();
  return view ? *view : View{};
}

Status RuntimeImpl::wait_for_nodes(std::size_t count, Duration timeout) {
  return board_.wait_for_nodes(count, after(timeout), timeout);
}

std::uint64_t RuntimeImpl::subscribe(ViewCallback on_change) {
  return board_.subscribe(std::move(on_change));
}

void RuntimeImpl::unsubscribe(std::uint64_t subscription) {
  board_.unsubscribe(subscription);
}

Status RuntimeImpl::drain(NodeId node) {
  const auto view = board_.view();
  if (!view || view->find(node) == nullptr)
    return {Code::not_found, fmt::format("there is no member {}", short_name(node))};
  if (node == view->head)
    return {Code::failed_precondition,
            "the head cannot be drained; stop it, and start another where there is a store"};
  participant_->drain(node);
  return {};
}

Status RuntimeImpl::membership_status() const {
  const auto out = board_.out();
  return out ? Status(*out) : Status();
}

Status RuntimeImpl::wait_until_out(Duration timeout) {
  return board_.wait_until_out(after(timeout));
}

// Actors.

caf::actor_system& RuntimeImpl::system() {
  TROUPE_CHECK(remoting_ != nullptr, "the actor system of a runtime that was stopped");
  return remoting_->system();
}

Status RuntimeImpl::register_name(const std::string& name, const caf::actor& actor) {
  const auto pass = calls_.enter();
  return pass ? remoting_->register_name(name, actor) : Status(stopped());
}

Result<caf::actor> RuntimeImpl::lookup(NodeId node, const std::string& name, Duration timeout) {
  const auto pass = calls_.enter();
  if (!pass) return stopped();
  return remoting_->lookup(node, name, timeout);
}

Result<caf::actor> RuntimeImpl::spawn_on(NodeId node, const std::string& type,
                                         caf::message arguments, Duration timeout) {
  const auto pass = calls_.enter();
  if (!pass) return stopped();
  return remoting_->spawn(node, type, std::move(arguments), timeout);
}

void RuntimeImpl::spawn_on_async(NodeId node, const std::string& type, caf::message arguments,
                                 Duration timeout, std::function<void(Result<caf::actor>)> done) {
  const auto pass = calls_.enter();
  if (!pass) return done(stopped());
  remoting_->spawn_async(node, type, std::move(arguments), timeout, std::move(done));
}

transport::Stats RuntimeImpl::transport_stats() const {
  return actors_->stats();
}

// The end.

void RuntimeImpl::leave() {
  participant_->leave();
  // A machine lets nobody wait for longer than a limit of silence.
  (void)board_.wait_until_out(after(options_.heartbeat_limit + std::chrono::seconds(1)));
  deposer_->set(nullptr);
  if (is_head_ && options_.store) {
    options_.store->erase(kViewKey);  // this cluster has ended; if another leads, nothing happens
    (void)options_.store->flush(std::chrono::seconds(1));
  }
  board_.set_out({Code::cancelled, is_head_ ? "the head ended the cluster" : "this node left"});
}

void RuntimeImpl::stop() {
  // Held all the while: a second caller returns when everything has stopped, too.
  MutexLock lock(stop_mutex_);
  if (stopped_) return;
  stopped_ = true;
  if (began_) leave();
  if (remoting_) remoting_->stop();
  calls_.close();
  if (actors_) actors_->stop();
  if (liveness_) liveness_->stop();
  board_.stop();
  remoting_.reset();
}

}  // namespace troupe::cluster

namespace troupe {

using cluster::RuntimeImpl;

namespace {

/// A runtime that `begin` has begun. The standard library throws where the system has no thread or
/// memory left.
template <class Begin>
Result<std::unique_ptr<Runtime>> make_runtime(RuntimeOptions options, Begin begin) try {
  auto runtime = std::make_unique<RuntimeImpl>(std::move(options));
  TROUPE_TRY(runtime->open());
  TROUPE_TRY(begin(*runtime));
  return std::unique_ptr<Runtime>(std::move(runtime));
} catch (const std::exception& e) {
  return Error{Code::resource_exhausted,
               fmt::format("this node cannot start: {}; look at the limits of threads and memory "
                           "(ulimit -u, ulimit -v)",
                           e.what())};
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::start_cluster(RuntimeOptions options) {
  return make_runtime(std::move(options), [](RuntimeImpl& runtime) { return runtime.lead(); });
}

Result<std::unique_ptr<Runtime>> Runtime::join(const transport::Address& head,
                                               RuntimeOptions options) {
  return make_runtime(std::move(options),
                      [&head](RuntimeImpl& runtime) { return runtime.join(head); });
}

}  // namespace troupe
