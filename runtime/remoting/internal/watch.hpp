#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <caf/attachable.hpp>

#include "runtime/remoting/internal/route.hpp"

namespace troupe::remoting {

class Endpoint;

/// Attached to an actor of this node that another node monitors: tells it when the actor ends.
class Watch final : public caf::attachable {
public:
  Watch(std::weak_ptr<Endpoint> endpoint, std::shared_ptr<Route> route, std::uint64_t actor)
      : endpoint_(std::move(endpoint)), route_(std::move(route)), actor_(actor) {}

  void actor_exited(const caf::error& reason, caf::execution_unit*) override;
  bool matches(const token& what) override {
    return what.subtype == kTokenType && what.ptr == route_.get();
  }

  static token token_of(const Route& route) { return {kTokenType, &route}; }

private:
  static constexpr std::size_t kTokenType = 0x74726f75;  ///< none of CAF's

  std::weak_ptr<Endpoint> endpoint_;
  std::shared_ptr<Route> route_;
  std::uint64_t actor_;
};

}  // namespace troupe::remoting
