#include <charconv>

#include <fmt/format.h>

#include "runtime/transport/transport.hpp"

namespace troupe::transport {
namespace {

Error bad_address(std::string_view text) {
  return Error{Code::invalid_argument,
               fmt::format("\"{}\" is no address: write HOST:PORT or [IPV6]:PORT, port 0 to 65535",
                           text.substr(0, 256))};
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);

  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) return bad_address(text);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return bad_address(text);
  }
  if (host.empty() || host.size() > 255 || host.find_first_of(" \t\n") != std::string_view::npos)
    return bad_address(text);

  Address address;
  address.host = host;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc{} || end != port.data() + port.size()) return bad_address(text);
  return address;
}

std::string to_string(const Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", address.host, address.port)
            : fmt::format("{}:{}", address.host, address.port);
}

}  // namespace troupe::transport
