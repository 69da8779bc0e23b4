#pragma once

namespace troupe::transport {

/// Takes back what libucs does to the whole process when it is loaded: its handlers of SIGSEGV,
/// SIGBUS, SIGILL, SIGFPE and SIGHUP (unless UCX_HANDLE_ERRORS or UCX_ERROR_SIGNALS is set), and
/// warnings on stdout (unless UCX_LOG_LEVEL is set). A handler that the program itself installed
/// since then stays. Any thread; harmless to repeat.
void tame_ucx();

}  // namespace troupe::transport
