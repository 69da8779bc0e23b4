#include "runtime/transport/internal/ucx_process.hpp"

#include <csignal>
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

namespace troupe::transport {
namespace {

bool handled_by_ucx(int signal) {
  struct sigaction action {};
  if (::sigaction(signal, nullptr, &action) != 0) return false;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return false;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(action.sa_handler), &info) == 0) return false;
  return info.dli_fname != nullptr &&
         std::string_view(info.dli_fname).find("libucs") != std::string_view::npos;
}

}  // namespace

void tame_ucx() {
  if (std::getenv("UCX_HANDLE_ERRORS") == nullptr && std::getenv("UCX_ERROR_SIGNALS") == nullptr)
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGHUP})
      if (handled_by_ucx(signal)) ucs_debug_disable_signal(signal);
  if (std::getenv("UCX_LOG_LEVEL") == nullptr)
    ucs_global_opts.log_component.log_level = UCS_LOG_LEVEL_FATAL;
}

}  // namespace troupe::transport
