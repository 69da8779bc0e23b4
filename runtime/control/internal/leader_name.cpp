#include "runtime/control/internal/leader_name.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace troupe::control {
namespace {
constexpr std::size_t kMaxShownBytes = 200;
}

std::string leader_name(const StoreOptions& options) {
  const std::string name = shown_name(options.leader);
  return fmt::format("{} (process {})", name, ::getpid());
}

std::string shown_name(std::string_view stored) {
  if (stored.empty()) return "an unnamed head";
  std::string shown(stored.substr(0, kMaxShownBytes));
  for (char& c : shown)
    if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) c = '?';
  return shown;
}

}  // namespace troupe::control
