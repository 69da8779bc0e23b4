#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/status.hpp"

namespace troupe::control {

struct SqliteAddress {
  std::string path;
};

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};
/// "HOST:PORT", for sentences.
std::string to_string(const Endpoint& endpoint);

struct EtcdAddress {
  std::vector<Endpoint> endpoints;
  std::string prefix;  ///< without a '/' at its end
};

/// A store's address, taken apart. Error: `invalid_argument` with the address and the forms.
Result<std::variant<SqliteAddress, EtcdAddress>> parse_address(std::string_view text);

}  // namespace troupe::control
