#pragma once

#include <memory>
#include <string>

#include "runtime/base/status.hpp"

using ucp_context_h = struct ucp_context*;

namespace troupe::transport {

/// A UCX context. Settings go to UCX by its configuration object, never by the environment; a
/// variable that the user set wins.
///
/// Ownership: outlives its workers. Threads: the progress thread.
class UcxContext {
public:
  struct Settings {
    std::string tls;            ///< as UCX_TLS; empty: that variable, else all
    bool shared_memory = true;  ///< false leaves out what only works inside a host
    bool loopback = false;      ///< peers have loopback addresses: keep off other networks
    bool operator==(const Settings&) const = default;
  };
  /// Errors: `io_error` with UCX's reason.
  static Result<std::unique_ptr<UcxContext>> make(const Settings& settings);
  ~UcxContext();
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;

  ucp_context_h get() const noexcept { return context_; }
  const Settings& settings() const noexcept { return settings_; }

private:
  UcxContext(ucp_context_h context, Settings settings)
      : context_(context), settings_(std::move(settings)) {}
  ucp_context_h context_;
  Settings settings_;
};

/// The list of transports in force: `tls`, or UCX_TLS, or empty for all.
std::string tls_in_force(const std::string& tls);

}  // namespace troupe::transport
