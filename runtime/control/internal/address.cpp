#include "runtime/control/internal/address.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace troupe::control {
namespace {

constexpr std::string_view kEtcd = "etcd://";
constexpr std::string_view kSqlite = "sqlite:";
constexpr std::size_t kMaxPrefixBytes = 256;

Error bad_address(std::string_view text, std::string_view why) {
  return Error{Code::invalid_argument,
               fmt::format("\"{}\" is no address of a store ({}): write sqlite:PATH, a path, or "
                           "etcd://HOST:PORT[,HOST:PORT...]/PREFIX",
                           text.substr(0, 256), why)};
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]@") != std::string_view::npos) {
    return std::nullopt;
  }
  Endpoint endpoint{.host = std::string(host)};
  const char* const end = port.data() + port.size();
  const auto [last, error] = std::from_chars(port.data(), end, endpoint.port);
  if (error != std::errc{} || last != end || endpoint.port == 0) return std::nullopt;
  if (host.empty() || host.size() > 255 || !is_plain(host)) return std::nullopt;
  return endpoint;
}

Result<EtcdAddress> parse_etcd(std::string_view text) {
  const std::string_view rest = text.substr(kEtcd.size());
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos) return bad_address(text, "it has no prefix");
  std::string_view hosts = rest.substr(0, slash);
  std::string_view prefix = rest.substr(slash + 1);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.empty()) return bad_address(text, "its prefix is empty");
  if (prefix.size() > kMaxPrefixBytes || !is_plain(prefix))
    return bad_address(text, "its prefix is too long or has other signs than printable ASCII");

  EtcdAddress address{.endpoints = {}, .prefix = std::string(prefix)};
  for (bool last = false; !last;) {
    const auto comma = hosts.find(',');
    last = comma == std::string_view::npos;
    const auto endpoint = parse_endpoint(hosts.substr(0, comma));
    if (!endpoint) return bad_address(text, "an endpoint is not HOST:PORT");
    address.endpoints.push_back(*endpoint);
    if (!last) hosts.remove_prefix(comma + 1);
  }
  return address;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
            : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

Result<std::variant<SqliteAddress, EtcdAddress>> parse_address(std::string_view text) {
  using Parsed = std::variant<SqliteAddress, EtcdAddress>;
  if (text.starts_with(kEtcd)) {
    TROUPE_ASSIGN(auto etcd, parse_etcd(text));
    return Parsed(std::move(etcd));
  }
  std::string_view path = text;
  if (path.starts_with(kSqlite)) {
    path.remove_prefix(kSqlite.size());
  } else if (path.substr(0, path.find('/')).find(':') != std::string_view::npos) {
    return bad_address(text, "an unknown kind");
  }
  if (path.empty()) return bad_address(text, "it is empty");
  if (path.find('\0') != std::string_view::npos) return bad_address(text, "a zero byte");
  if (path.ends_with('/')) return bad_address(text, "a folder, not a file");
  return Parsed(SqliteAddress{std::string(path)});
}

}  // namespace troupe::control
