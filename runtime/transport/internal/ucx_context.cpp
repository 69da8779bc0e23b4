#include "runtime/transport/internal/ucx_context.hpp"

#include <cstdlib>

#include <fmt/format.h>
#include <ucp/api/ucp.h>

namespace troupe::transport {
namespace {

struct ReleaseConfig {
  void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};
using Config = std::unique_ptr<ucp_config_t, ReleaseConfig>;

/// Sets `name` unless the user did so by the environment.
Status modify(ucp_config_t* config, const std::string& name, const std::string& value) {
  if (std::getenv(("UCX_" + name).c_str()) != nullptr) return {};
  const ucs_status_t status = ucp_config_modify(config, name.c_str(), value.c_str());
  if (status == UCS_OK) return {};
  return Error{Code::io_error,
               fmt::format("UCX does not take {}={}: {}", name, value, ucs_status_string(status))};
}

}  // namespace

std::string tls_in_force(const std::string& tls) {
  if (!tls.empty()) return tls;
  const char* variable = std::getenv("UCX_TLS");
  return variable == nullptr || std::string_view(variable) == "all" ? "" : variable;
}

Result<std::unique_ptr<UcxContext>> UcxContext::make(const Settings& settings) {
  ucp_config_t* read = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &read);
  if (status != UCS_OK)
    return Error{Code::io_error, fmt::format("UCX cannot read its settings ({}): check the UCX_ "
                                             "variables of the environment",
                                             ucs_status_string(status))};
  const Config config(read);
  if (!settings.tls.empty()) {
    status = ucp_config_modify(read, "TLS", settings.tls.c_str());
    if (status != UCS_OK)
      return Error{Code::io_error, fmt::format("UCX does not take the transports \"{}\": {}",
                                               settings.tls, ucs_status_string(status))};
  } else if (!settings.shared_memory) {
    TROUPE_TRY(modify(read, "TLS", "^sm"));
  }
  if (settings.loopback) TROUPE_TRY(modify(read, "NET_DEVICES", "lo"));
  // Without this, shared memory is not taken for endpoints that report the loss of their peer.
  if (settings.shared_memory) TROUPE_TRY(modify(read, "MM_ERROR_HANDLING", "y"));

  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "troupe";
  ucp_context_h context = nullptr;
  status = ucp_init(&params, read, &context);
  if (status != UCS_OK)
    return Error{Code::io_error,
                 fmt::format("UCX cannot start with transports \"{}\" ({}): check UCX_TLS and "
                             "UCX_NET_DEVICES",
                             tls_in_force(settings.tls), ucs_status_string(status))};
  return std::unique_ptr<UcxContext>(new UcxContext(context, settings));
}

UcxContext::~UcxContext() {
  ucp_cleanup(context_);
}

}  // namespace troupe::transport
