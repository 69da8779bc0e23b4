#include <exception>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/actor_registry.hpp>
#include <caf/exit_reason.hpp>
#include <caf/ref_counted.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <fmt/format.h>

#include "runtime/remoting/caf_error.hpp"
#include "runtime/remoting/internal/endpoint.hpp"

// Names, lookups and spawns.

namespace troupe::remoting {
namespace {

/// Makes an actor on one of the scheduler's threads: its constructor is the program's, and may take
/// as long as it likes.
class SpawnJob final : public caf::resumable, public caf::ref_counted {
public:
  SpawnJob(caf::actor_system& system, std::string type, caf::message arguments, Calls::Done then)
      : system_(system),
        type_(std::move(type)),
        arguments_(std::move(arguments)),
        done_(std::move(then)) {}

  subtype_t subtype() const override { return function_object; }
  resume_result resume(caf::execution_unit* unit, std::size_t) override {
    done_(spawn(unit));
    return caf::resumable::done;
  }
  void intrusive_ptr_add_ref_impl() override { ref(); }
  void intrusive_ptr_release_impl() override { deref(); }

private:
  Result<caf::actor> spawn(caf::execution_unit* unit) try {
    auto made = system_.spawn<caf::actor>(type_, std::move(arguments_), unit, false);
    if (made) return std::move(*made);
    if (made.error() == caf::sec::unknown_type || made.error() == caf::sec::invalid_argument)
      return Error{Code::not_found,
                   fmt::format("no actor type '{}' is known; add it with add_actor_type()", type_)};
    if (made.error() == caf::sec::cannot_spawn_actor_from_arguments)
      return Error{Code::invalid_argument,
                   fmt::format("actor type '{}' cannot be made from these arguments", type_)};
    return from_caf(made.error());
  } catch (const std::exception& e) {
    return Error{Code::internal, fmt::format("making an actor '{}' threw: {}", type_, e.what())};
  }

  caf::actor_system& system_;
  std::string type_;
  caf::message arguments_;
  Calls::Done done_;
};

bool ended(const caf::actor& actor) {
  return caf::actor_cast<caf::abstract_actor*>(actor)->getf(
      caf::abstract_actor::is_terminated_flag);
}

}  // namespace

void end_actor(const caf::actor& actor) {
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(actor, caf::exit_reason::kill);  // for one that would not
}

Status Endpoint::register_name(const std::string& name, const caf::actor& actor) {
  if (actor == nullptr)
    return Error{Code::invalid_argument,
                 fmt::format("the actor to register as '{}' is null", name)};
  caf::actor replaced;  // let go of without the lock
  {
    MutexLock lock(mutex_);
    if (!running_)
      return Error{Code::failed_precondition,
                   fmt::format("'{}' cannot be registered: this node's actors were stopped", name)};
    auto& named = names_[name];
    if (named != nullptr && !ended(named))
      return Error{
          Code::already_exists,
          fmt::format("an actor is registered as '{}' already; unregister it first", name)};
    replaced = std::exchange(named, actor);
  }
  const auto id = actor.id();
  // Those who monitor the actor may hear of its end before this does: hence ended().
  caf::actor_cast<caf::abstract_actor*>(actor)->attach_functor([weak = weak_from_this(), name, id] {
    if (const auto self = weak.lock(); self != nullptr) self->forget_name(name, id);
  });
  return {};
}

void Endpoint::forget_name(const std::string& name, caf::actor_id actor) {
  caf::actor forgotten;  // let go of without the lock
  MutexLock lock(mutex_);
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  if (actor != caf::invalid_actor_id && found->second.id() != actor) return;
  forgotten = std::move(found->second);
  names_.erase(found);
}

caf::actor Endpoint::find_name(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto found = names_.find(name);
  return found != names_.end() && !ended(found->second) ? found->second : caf::actor{};
}

std::uint64_t Endpoint::lookup(NodeId node, const std::string& name, Calls::Done done) {
  const auto route = route_to(node);
  const auto call =
      calls_.begin(route.get(), [node, name, done = std::move(done)](Result<caf::actor> result) {
        if (result.code() == Code::not_found)
          result = Error{Code::not_found, fmt::format("no actor is registered as '{}' on node {}",
                                                      name, short_name(node))};
        done(std::move(result));
      });
  const Envelope envelope{.kind = Kind::lookup, .message_id = call};
  auto sent = send_written(*route, envelope, [&](WireWriter& sink) {
    sink.write_string(name);
    return caf::error{};
  });
  if (!sent.ok()) give_up(call, sent.error());
  return call;
}

std::uint64_t Endpoint::spawn(NodeId node, const std::string& type, const caf::message& arguments,
                              Calls::Done done) {
  const auto route = route_to(node);
  const auto call = calls_.begin(route.get(), std::move(done));
  const Envelope envelope{.kind = Kind::spawn, .message_id = call};
  SendLease lease(node_);
  WireWriter sink{&context_, lease->scratch, lease->segments};
  sink.write_string(type);
  if (auto error = lease->writer.write(system_, sink, arguments)) {
    give_up(call, {Code::invalid_argument,
                   fmt::format("an argument for actor type '{}' cannot be sent: {}", type,
                               from_caf(error).message)});
    return call;
  }
  auto sent = send(*route, envelope, lease->scratch.bytes(), std::exchange(lease->segments, {}));
  if (!sent.ok()) give_up(call, sent.error());
  return call;
}

void Endpoint::give_up(std::uint64_t call, const Error& reason) {
  calls_.finish(call, nullptr, reason);
}

void Endpoint::spawn_here(std::string type, caf::message arguments, Calls::Done done) {
  auto job = caf::make_counted<SpawnJob>(
      system_, std::move(type), std::move(arguments),
      [weak = weak_from_this(), done = std::move(done)](const Result<caf::actor>& made) {
        if (const auto self = weak.lock(); made.ok() && self != nullptr)
          self->end_with_this_node(made.value());
        done(made);
      });
  system_.scheduler().enqueue(job.detach());
}

void Endpoint::end_with_this_node(const caf::actor& spawned) {
  const auto id = spawned.id();
  {
    MutexLock lock(mutex_);
    if (running_) spawned_.emplace(id, caf::actor_cast<caf::weak_actor_ptr>(spawned));
  }
  if (!running_) end_actor(spawned);  // if stop() has not seen it
  caf::actor_cast<caf::abstract_actor*>(spawned)->attach_functor([weak = weak_from_this(), id] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    MutexLock lock(self->mutex_);
    self->spawned_.erase(id);
  });
}

void Endpoint::finish_later(Result<caf::actor> result, Calls::Done done) {
  if (!running_ || transport_.on_progress_thread()) return done(std::move(result));
  post([result = std::move(result), done = std::move(done)] { done(result); });
}

caf::error Endpoint::take_lookup(const Incoming& in) {
  std::string_view name;
  if (auto error = in.source.read_string(name)) return error;
  if (!in.source.done()) return caf::sec::end_of_stream;
  const auto found = find_name(std::string(name));
  if (found != nullptr) export_actor(caf::actor_cast<caf::strong_actor_ptr>(found));
  const Envelope answer{.kind = Kind::found,
                        .source = found != nullptr ? found.id() : caf::invalid_actor_id,
                        .message_id = in.envelope.message_id};
  (void)send(*in.route, answer, {});
  return {};
}

caf::error Endpoint::take_found(const Incoming& in) {
  if (!in.source.done()) return caf::sec::end_of_stream;
  const auto actor = in.envelope.source;
  calls_.finish(in.envelope.message_id, in.route.get(),
                actor != caf::invalid_actor_id ? Result<caf::actor>(proxy(*in.route, actor))
                                               : Error{Code::not_found, ""});
  return {};
}

caf::error Endpoint::take_spawn(const Incoming& in) {
  std::string_view type;
  if (auto error = in.source.read_string(type)) return error;
  caf::message arguments;
  if (auto error = reader_.read(in.source, arguments)) return error;
  if (!in.source.done()) return caf::sec::end_of_stream;
  spawn_here(std::string(type), std::move(arguments),
             [weak = weak_from_this(), route = in.route,
              call = in.envelope.message_id](const Result<caf::actor>& made) {
               const auto self = weak.lock();
               if (self != nullptr) self->answer_spawn(*route, call, made);
             });
  return {};
}

void Endpoint::answer_spawn(Route& route, std::uint64_t call, const Result<caf::actor>& made) {
  if (!running_) return;
  Envelope answer{.kind = Kind::spawned, .message_id = call};
  if (made.ok()) {
    answer.source = made.value().id();
    export_actor(caf::actor_cast<caf::strong_actor_ptr>(made.value()));
    (void)send(route, answer, {});
    return;
  }
  (void)send_written(route, answer, [&](WireWriter& sink) {
    auto code = static_cast<std::uint16_t>(made.code());
    sink.write_string(made.error().message);
    return sink(code);
  });
}

caf::error Endpoint::take_spawned(const Incoming& in) {
  const auto actor = in.envelope.source;
  Error reason;
  if (actor == caf::invalid_actor_id) {
    std::string_view text;
    std::uint16_t code = 0;
    if (auto error = in.source.read_string(text)) return error;
    if (auto error = in.source(code)) return error;
    reason.code = static_cast<Code>(code);
    if (reason.code == Code::ok || to_string(reason.code) == "unknown")
      reason.code = Code::internal;
    reason.message = text;
  }
  if (!in.source.done()) return caf::sec::end_of_stream;
  calls_.finish(in.envelope.message_id, in.route.get(),
                actor != caf::invalid_actor_id ? Result<caf::actor>(proxy(*in.route, actor))
                                               : Result<caf::actor>(std::move(reason)));
  return {};
}

// --- routes' wishes ------------------------------------------------------------------------------

void Endpoint::connect_later(std::shared_ptr<Route> route) {
  post([this, route = std::move(route)] { connect(route); });
}

void Endpoint::flush_later(std::shared_ptr<Route> route) {
  post([route = std::move(route)] { route->flush(); });
}

void Endpoint::connect(const RoutePtr& route) {
  // The node may have been lost or have connected itself since.
  if (route->lost()) return;
  if (!route->peers().empty()) return route->flush();
  Remoting::Resolver resolver;
  {
    MutexLock lock(mutex_);
    resolver = resolver_;
  }
  const auto address = resolver ? resolver(route->node()) : std::nullopt;
  if (!address)
    return fail_route(route,
                      {Code::unavailable, fmt::format("node {} is not known here; it may have left",
                                                      short_name(route->node()))});
  transport_.connect(*address, [weak = weak_from_this(), route,
                                where = *address](Result<transport::PeerId> result) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    auto why = result.ok()
                   ? Error{Code::unavailable,
                           fmt::format("at {} there is another node than {}",
                                       transport::to_string(where), short_name(route->node()))}
                   : result.error();
    self->post([endpoint = self.get(), route, why = std::move(why)] {
      if (!route->lost() && route->peers().empty()) endpoint->fail_route(route, why);
    });
  });
}

}  // namespace troupe::remoting
