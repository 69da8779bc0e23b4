#include "tools/client.hpp"

namespace troupe::tool {

Result<Client> Client::connect(const NodeOptions& options) {
  TROUPE_ASSIGN(auto head, transport::Address::parse(options.head));
  NodeOptions visitor = options;
  visitor.slots = 0;
  if (visitor.name.empty()) visitor.name = "client";
  TROUPE_ASSIGN(auto runtime_options, visitor.runtime_options());
  Client client;
  TROUPE_ASSIGN(client.runtime, Runtime::join(head, std::move(runtime_options)));
  TROUPE_ASSIGN(client.jobs,
                client.runtime->lookup(client.runtime->view().head, train::kJobServiceName));
  return client;
}

}  // namespace troupe::tool
