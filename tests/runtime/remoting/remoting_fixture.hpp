#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <gtest/gtest.h>

#include "runtime/base/mutex.hpp"
#include "runtime/remoting/buffer_message.hpp"
#include "runtime/remoting/caf_error.hpp"
#include "runtime/remoting/remoting.hpp"
#include "tests/runtime/remoting/fake_transport.hpp"

namespace troupe::remoting {

/// How long a test waits for what must come: far more than it takes, for a busy machine.
inline constexpr auto kPatience = std::chrono::seconds(60);

/// A message type of a program's own.
struct Sample {
  std::string label;
  std::vector<double> values;
  std::map<std::string, std::int32_t> counts;
  std::vector<bool> flags;
  friend bool operator==(const Sample&, const Sample&) = default;
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, Sample& x) {
    return f(caf::meta::type_name("Sample"), x.label, x.values, x.counts, x.flags);
  }
};

/// Several buffers inside a type and a container.
struct Bundle {
  Buffer first;
  std::vector<Buffer> more;
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, Bundle& x) {
    return f(caf::meta::type_name("Bundle"), x.first, x.more);
  }
};

inline Buffer filled(std::size_t bytes, int seed) {
  auto buffer = Buffer::allocate(bytes).value();
  for (std::size_t i = 0; i < bytes; ++i)
    buffer.data()[i] = static_cast<std::byte>((i * 31 + static_cast<std::size_t>(seed)) >> (i % 3));
  return buffer;
}

inline bool same(const Buffer& a, const Buffer& b) {
  return a.size() == b.size() && std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
}

/// Values that arrive on other threads.
template <class T>
class Collected {
public:
  void add(T value) {
    MutexLock lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  /// Waits for `n` of them; fewer only if they did not come.
  std::vector<T> wait(std::size_t n) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    MutexLock lock(mutex_);
    while (values_.size() < n)
      if (changed_.wait_until(mutex_, until) == std::cv_status::timeout) break;
    return values_;
  }
  std::size_t size() {
    MutexLock lock(mutex_);
    return values_.size();
  }

private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<T> values_ TROUPE_GUARDED_BY(mutex_);
};

inline caf::behavior echo(caf::event_based_actor*) {
  return {[](std::int32_t x) { return x; },
          [](const std::string& x) { return x; },
          [](const Buffer& x) { return x; },
          [](const Sample& x) { return x; },
          [](const Bundle& x) { return x; },
          [](std::int32_t x, const caf::message& y) { return caf::make_message(x, y); }};
}

/// Adds what every test's program knows; `more` adds to that.
inline void know_types(caf::actor_system_config& config) {
  config.add_message_type<Sample>("Sample");
  config.add_message_type<Bundle>("Bundle");
  config.add_actor_type("echo", echo);
  config.add_actor_type("adder", [](caf::event_based_actor*, std::int32_t by) -> caf::behavior {
    return {[by](std::int32_t x) { return x + by; }};
  });
}

enum class Network { fake, ucx };

/// One runtime's remoting with its transport.
class TestNode {
public:
  TestNode(FakeNetwork& network, Network kind, std::string name, Options options = {}) {
    transport::Options wire;
    wire.node = NodeId::random();
    wire.name = std::move(name);
    if (kind == Network::fake) {
      auto made = std::make_unique<FakeTransport>(network, wire);
      fake = made.get();
      transport = std::move(made);
    } else {
      transport = transport::make_ucx_transport(wire).value();
    }
    id = wire.node;
    options.node = wire.node;
    if (!options.configure) options.configure = know_types;
    remoting = make_remoting(std::move(options), *transport).value();
    EXPECT_TRUE(transport->start().ok());
    address = transport->listen({"127.0.0.1", 0}).value();
  }
  ~TestNode() { shut_down(); }

  void shut_down() {
    if (remoting == nullptr) return;
    remoting->stop();
    transport->stop();
    remoting.reset();
    transport.reset();
  }

  caf::actor_system& system() { return remoting->system(); }

  NodeId id;
  transport::Address address;
  FakeTransport* fake = nullptr;
  std::unique_ptr<transport::Transport> transport;
  std::unique_ptr<Remoting> remoting;
};

/// Nodes that find each other.
class RemotingFixture {
public:
  explicit RemotingFixture(Network kind) : kind_(kind) {}

  TestNode& add(std::string name, Options options = {}) {
    nodes_.push_back(
        std::make_unique<TestNode>(network, kind_, std::move(name), std::move(options)));
    auto& node = *nodes_.back();
    {
      MutexLock lock(mutex_);
      addresses_[node.id] = node.address;
    }
    node.remoting->set_resolver([this](NodeId id) -> std::optional<transport::Address> {
      MutexLock lock(mutex_);
      const auto at = addresses_.find(id);
      return at != addresses_.end() ? std::optional(at->second) : std::nullopt;
    });
    return node;
  }
  void forget(NodeId node) {
    MutexLock lock(mutex_);
    addresses_.erase(node);
  }

  FakeNetwork network;

private:
  const Network kind_;
  Mutex mutex_;
  std::map<NodeId, transport::Address> addresses_ TROUPE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<TestNode>> nodes_;
};

/// `actor`, as `from` sees it.
inline caf::actor reach(TestNode& from, TestNode& to, const caf::actor& actor,
                        const std::string& name = "it") {
  EXPECT_TRUE(to.remoting->register_name(name, actor).ok());
  auto found = from.remoting->lookup(to.id, name, kPatience);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : to_string(found.error()));
  to.remoting->unregister_name(name);
  return found.ok() ? *found : caf::actor{};
}

/// The response to a request, or its error.
template <class T, class... Args>
Result<T> ask(caf::scoped_actor& self, const caf::actor& to, const Args&... args) {
  Result<T> result = Error{Code::internal, "no response"};
  self->request(to, kPatience, args...)
      .receive([&](const T& x) { result = x; },
               [&](const caf::error& error) { result = from_caf(error); });
  return result;
}

}  // namespace troupe::remoting
