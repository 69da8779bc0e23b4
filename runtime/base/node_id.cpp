#include "runtime/base/node_id.hpp"

#include <charconv>

#include <fmt/format.h>
#include <sys/random.h>

namespace troupe {

NodeId NodeId::random() {
  NodeId id;
  while (!id.valid()) {
    auto got = ::getrandom(&id, sizeof id, 0);
    TROUPE_CHECK(got == sizeof id, "getrandom failed");
  }
  return id;
}

Result<NodeId> NodeId::parse(std::string_view text) {
  NodeId id;
  auto half = [&](std::size_t at, std::uint64_t& out) {
    auto part = text.substr(at, 16);
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), out, 16);
    return error == std::errc{} && end == part.data() + part.size();
  };
  if (text.size() != 32 || !half(0, id.high) || !half(16, id.low) || !id.valid())
    return Error{
        Code::invalid_argument,
        fmt::format("node id '{}' is not 32 hex digits; copy it from `troupe status`", text)};
  return id;
}

std::string to_string(NodeId id) {
  return fmt::format("{:016x}{:016x}", id.high, id.low);
}

std::string short_name(NodeId id) {
  return fmt::format("{:08x}", id.high >> 32);
}

}  // namespace troupe
