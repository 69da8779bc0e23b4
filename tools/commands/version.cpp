#include "runtime/transport/version.hpp"

#include <cstdio>

#include <caf/config.hpp>

#include "runtime/transport/transport.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

namespace troupe::tool {

void add_version(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("version", "Print the versions of Troupe and its libraries");
  command->callback([&context] {
    context.run = [] {
      std::printf("troupe %s\nprotocol %u\nCAF %d.%d.%d\nUCX %s\n", TROUPE_VERSION,
                  transport::kProtocolVersion, CAF_MAJOR_VERSION, CAF_MINOR_VERSION,
                  CAF_PATCH_VERSION, transport::ucx_version().c_str());
      return kSuccess;
    };
  });
}

}  // namespace troupe::tool
