#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/tools/process.hpp"

namespace troupe::tool {

/// Hosts 1, 2, ... as network namespaces, whose links meet in a bridge that has a namespace of its
/// own. What is cut or dropped is so without a word: no FIN, no RST, no ICMP.
///
/// Ownership: the namespaces are gone with the object; end the processes in them before.
/// Failure:   missing() says why there are no namespaces: they want root, and `ip` of iproute2.
class Network {
public:
  explicit Network(int hosts);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// A sentence, or nothing if all is well.
  const std::string& missing() const { return missing_; }

  static std::string address(int host) { return "10.77.0." + std::to_string(host); }

  /// Starts the troupe command on `host`.
  std::unique_ptr<Process> start(int host, std::vector<std::string> arguments,
                                 std::vector<std::string> environment = {}) const;

  /// Pulls the cable out of the switch, and puts it in again. The host loses its carrier, nothing
  /// else.
  void unplug(int host);
  void plug(int host);
  /// Sets the host's own end down: it has no route any more, and sending fails there.
  void link_down(int host);
  /// From now on nothing that `from` sends comes to `to`; the other direction stays as it was.
  void drop(int from, int to);

private:
  std::string space(int host) const { return prefix_ + std::to_string(host); }

  const int hosts_;
  const std::string prefix_, switch_;
  std::string missing_;
};

}  // namespace troupe::tool
