#include "tools/client.hpp"

#include <fmt/format.h>

namespace troupe::tool {

Result<Client> Client::connect(const NodeOptions& options) {
  NodeOptions visitor = options;
  visitor.slots = 0;
  if (visitor.name.empty()) visitor.name = "client";
  TROUPE_ASSIGN(auto runtime_options, visitor.runtime_options());
  Client client;
  TROUPE_ASSIGN(client.runtime, options.join(std::move(runtime_options)));
  client.head = client.runtime->view().head;
  TROUPE_ASSIGN(client.jobs, client.runtime->lookup(client.head, train::kJobServiceName));
  return client;
}

Status Client::find_next_head() {
  constexpr auto kLook = std::chrono::milliseconds(50);
  for (;;) {
    if (runtime->wait_until_out(kLook).ok())
      return {Code::unavailable, fmt::format("{}; start a head again and look with `troupe status`",
                                             runtime->membership_status().error().message)};
    const NodeId now = runtime->view().head;
    if (now == head) continue;
    // Its jobs come a moment after its cluster.
    auto service = runtime->lookup(now, train::kJobServiceName);
    if (!service.ok()) continue;
    head = now;
    jobs = *service;
    return {};
  }
}

}  // namespace troupe::tool
