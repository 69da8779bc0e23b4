#include "runtime/cluster/internal/participant.hpp"

#include <utility>
#include <variant>

#include "runtime/membership/codec.hpp"

namespace troupe::cluster {

using membership::Plane;

Participant::Participant(transport::Transport& actors, transport::Transport& liveness,
                         const Clock& clock, Events& events)
    : actors_(actors), liveness_(liveness), clock_(clock), events_(events) {
  actors_.set_handler(transport::Channel::membership, actors_port_);
  liveness_.set_handler(transport::Channel::membership, liveness_port_);
}

void Participant::begin() {
  liveness_.post([this] {
    machine_ = make_machine(now());
    for (auto& event : std::exchange(early_, {})) event();
    perform();
    tick();
  });
}

void Participant::leave() {
  run([this] { machine_->leave(now()); });
}

void Participant::drain(NodeId node) {
  run([this, node] { machine_->drain(node, now()); });
}

// Events. Those of the liveness transport are there already; the other's are posted, in order.

void Participant::Port::on_connected(transport::PeerId peer, const transport::PeerInfo& info) {
  const membership::Link link{plane_, peer};
  owner_.run([owner = &owner_, link, node = info.node] {
    owner->machine_->connected(link, node, owner->now());
  });
}

void Participant::Port::on_message(transport::PeerId peer, std::span<const std::byte> bytes,
                                   std::span<Buffer>) {
  const membership::Link link{plane_, peer};
  auto message = std::make_shared<Result<membership::Message>>(membership::decode(bytes));
  owner_.run([owner = &owner_, link, message] {
    if (message->ok())
      owner->machine_->received(link, **message, owner->now());
    else
      owner->machine_->malformed(link, message->error(), owner->now());
  });
}

void Participant::Port::on_lost(transport::PeerId peer, const Error& reason) {
  const membership::Link link{plane_, peer};
  owner_.run(
      [owner = &owner_, link, reason] { owner->machine_->lost(link, reason, owner->now()); });
}

void Participant::run(std::function<void()> event) {
  auto step = [this, event = std::move(event)] {
    if (!machine_) return early_.push_back(event);
    event();
    perform();
  };
  if (liveness_.on_progress_thread())
    step();
  else
    liveness_.post(std::move(step));
}

void Participant::tick() {
  if (out_) return;
  before_tick(now());
  machine_->tick(now());
  perform();
  liveness_.post_at(machine_->next_tick(), [this] { tick(); });
}

// Actions.

void Participant::perform() {
  for (const auto& action : machine_->take_actions())
    std::visit([this](const auto& a) { perform(a); }, action);
}

void Participant::perform(const membership::Send& send) {
  auto bytes = encoded(send.message);
  const auto peer = send.link.number;
  // A peer that is gone reports that by on_lost.
  if (send.link.plane == Plane::liveness) {
    (void)liveness_.send(peer, transport::Channel::membership, *bytes, {}, {});
    return;
  }
  // From its own thread, where sending never blocks.
  actors_.post([this, peer, bytes] {
    (void)actors_.send(peer, transport::Channel::membership, *bytes, {}, {});
  });
}

void Participant::perform(const membership::Connect& connect) {
  const auto id = connect.id;
  const auto plane = connect.plane;
  transport(plane).connect(connect.address, [this, id, plane](Result<transport::PeerId> peer) {
    auto link = peer.ok() ? Result<membership::Link>(membership::Link{plane, *peer})
                          : Result<membership::Link>(peer.error());
    run([this, id, link] { machine_->connect_done(id, link, now()); });
  });
}

void Participant::perform(const membership::Close& close) {
  transport(close.link.plane).close(close.link.number, close.reason);
}

void Participant::perform(const membership::NewView& next) {
  after_view(*next.view, next.departures);
  events_.on_view(next.view, next.departures);
}

void Participant::perform(const membership::Out& out) {
  out_ = true;
  events_.on_out(out.reason);
}

std::shared_ptr<const std::vector<std::byte>> Participant::encoded(
    const membership::Message& message) {
  std::shared_ptr<const void> shared;
  if (const auto* amended = std::get_if<membership::Amended>(&message))
    shared = amended->amendment;
  else if (const auto* changed = std::get_if<membership::ViewChanged>(&message))
    shared = changed->view;
  if (shared != nullptr && shared == encoded_) return encoded_bytes_;
  auto bytes = std::make_shared<const std::vector<std::byte>>(membership::encode(message));
  if (shared != nullptr) {
    encoded_ = std::move(shared);
    encoded_bytes_ = bytes;
  }
  return bytes;
}

transport::Transport& Participant::transport(Plane plane) {
  return plane == Plane::actors ? actors_ : liveness_;
}

}  // namespace troupe::cluster
