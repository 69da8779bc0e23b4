#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

#include "runtime/base/clock.hpp"
#include "tests/runtime/control/store_fixture.hpp"

namespace troupe::control {

/// Ports of this machine that nobody listens on now.
std::uint16_t free_port();

/// An etcd of one member on ports of its own, its data in a temporary folder. Killed at the end of
/// scope, and when the test's main thread ends. Threads: one.
class EtcdServer {
public:
  static bool installed();
  /// Serves when this returns; null if it does not within 30 s.
  static std::unique_ptr<EtcdServer> start();
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  std::string address(const std::string& prefix) const;
  void signal(int number) const;
  /// Posts a request; the answer's body, empty if there is none.
  std::string post(const std::string& path, const std::string& body) const;

private:
  explicit EtcdServer(std::uint16_t port) : port_(port) {}
  bool serves() const;

  TemporaryFolder data_;
  std::uint16_t port_ = 0;
  pid_t pid_ = 0;
};

}  // namespace troupe::control
