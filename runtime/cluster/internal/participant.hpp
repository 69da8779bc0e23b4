#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/clock.hpp"
#include "runtime/membership/machine.hpp"
#include "runtime/transport/transport.hpp"

namespace troupe::cluster {

/// Wires a membership machine to the two transports and the clock: what they report goes in, and
/// what the machine wants is done. The machine lives on the liveness transport's progress thread,
/// so the cluster's life does not wait for bulk data.
///
/// Ownership: owned by a Runtime; borrows the transports, and must outlive their stop().
/// Threads:   the constructor before the transports' start(); begin() and leave() from any. The
///            events come on the liveness transport's thread.
class Participant {
public:
  /// Hears what the membership decides.
  class Events {
  public:
    virtual ~Events() = default;
    virtual void on_view(membership::SharedView view, std::vector<Departure> departures) = 0;
    /// Out of the cluster for good. Once.
    virtual void on_out(const Error& reason) = 0;
  };

  /// Becomes the handler of Channel::membership of both.
  Participant(transport::Transport& actors, transport::Transport& liveness, const Clock& clock,
              Events& events);
  virtual ~Participant() = default;
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  /// Makes the machine and goes. After start() of the transports; once.
  void begin();
  /// Asks to go; Events::on_out follows.
  void leave();
  /// Asks for a member to leave.
  void drain(NodeId node);

protected:
  // On the liveness thread.
  virtual std::unique_ptr<membership::Machine> make_machine(TimePoint now) = 0;
  virtual void before_tick(TimePoint) {}
  virtual void after_view(const View&, const std::vector<Departure>&) {}

  TimePoint now() const { return clock_.now(); }
  /// On the liveness thread, once there is a machine.
  void run(std::function<void()> event);

private:
  /// One transport's handler.
  class Port final : public transport::Handler {
  public:
    Port(Participant& owner, membership::Plane plane) : owner_(owner), plane_(plane) {}
    void on_connected(transport::PeerId peer, const transport::PeerInfo& info) override;
    void on_message(transport::PeerId peer, std::span<const std::byte> bytes,
                    std::span<Buffer> segments) override;
    void on_lost(transport::PeerId peer, const Error& reason) override;

  private:
    Participant& owner_;
    const membership::Plane plane_;
  };

  void tick();
  void perform();
  void perform(const membership::Send& send);
  void perform(const membership::Connect& connect);
  void perform(const membership::Close& close);
  void perform(const membership::NewView& next);
  void perform(const membership::Out& out);
  std::shared_ptr<const std::vector<std::byte>> encoded(const membership::Message& message);
  transport::Transport& transport(membership::Plane plane);

  transport::Transport& actors_;
  transport::Transport& liveness_;
  const Clock& clock_;
  Events& events_;
  Port actors_port_{*this, membership::Plane::actors};
  Port liveness_port_{*this, membership::Plane::liveness};

  // The liveness thread's.
  std::unique_ptr<membership::Machine> machine_;
  std::vector<std::function<void()>> early_;  ///< events before there was a machine
  bool out_ = false;
  std::shared_ptr<const void> encoded_;  ///< a change goes to many, and is encoded once
  std::shared_ptr<const std::vector<std::byte>> encoded_bytes_;
};

}  // namespace troupe::cluster
