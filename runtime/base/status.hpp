#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "runtime/base/check.hpp"

namespace troupe {

/// What kind of thing went wrong. The numbers go on the wire and are never reused.
/// docs/errors.md says for each what the caller has to rebuild.
enum class Code : std::uint16_t {
  ok = 0,
  invalid_argument = 1,      ///< the caller's value is wrong; nothing changed
  not_found = 2,             ///< a name, file, actor or node that is not there
  already_exists = 3,        ///< a name that is taken
  unavailable = 4,           ///< the peer is gone or cannot be reached
  deadline_exceeded = 5,     ///< it did not finish in the time given
  cancelled = 6,             ///< stopped on purpose before it finished
  corrupt_data = 7,          ///< bytes from a file or the wire that do not hold together
  io_error = 8,              ///< the operating system refused
  resource_exhausted = 9,    ///< memory, queue space, ports
  permission_denied = 10,    ///< wrong cluster token
  version_mismatch = 11,     ///< the other side speaks another protocol
  protocol_error = 12,       ///< the other side broke the protocol
  address_in_use = 13,       ///< the port is taken
  failed_precondition = 14,  ///< right call, wrong moment (stopped, not joined)
  stale_generation = 15,     ///< from an older placement; dropped
  shape_mismatch = 16,       ///< tensors that do not fit each other
  not_supported = 17,        ///< not built in, or not possible on this machine
  internal = 18,             ///< our fault
};

/// The code's name as in docs/errors.md, "unknown" for a number outside the list.
std::string_view to_string(Code code) noexcept;

/// A code and one sentence that names the thing, the value and what to do.
struct Error {
  Code code = Code::internal;
  std::string message;
};

/// "message (code_name)".
std::string to_string(const Error& error);

/// Success or an Error. Threads: a value type.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design
  Status(Code code, std::string message) : error_(Error{code, std::move(message)}) {}

  bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  Code code() const noexcept { return error_ ? error_->code : Code::ok; }

  /// Must not be ok.
  const Error& error() const& {
    TROUPE_CHECK(error_.has_value(), "error() of a Status that is ok");
    return *error_;
  }
  Error&& error() && {
    TROUPE_CHECK(error_.has_value(), "error() of a Status that is ok");
    return std::move(*error_);
  }

private:
  std::optional<Error> error_;
};

/// A T or an Error. Threads: a value type.
template <class T>
class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : value_(std::in_place_index<1>, std::move(error)) {}  // NOLINT
  Result(Code code, std::string message)
      : value_(std::in_place_index<1>, Error{code, std::move(message)}) {}

  bool ok() const noexcept { return value_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  Code code() const noexcept { return ok() ? Code::ok : std::get<1>(value_).code; }

  /// Must be ok; aborts with the error's sentence otherwise.
  T& value() & {
    require();
    return std::get<0>(value_);
  }
  const T& value() const& {
    require();
    return std::get<0>(value_);
  }
  /// By value: of what a call returned, a reference would outlive it.
  T value() && {
    require();
    return std::move(std::get<0>(value_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Must not be ok.
  const Error& error() const& {
    TROUPE_CHECK(!ok(), "error() of a Result that is ok");
    return std::get<1>(value_);
  }
  Error&& error() && {
    TROUPE_CHECK(!ok(), "error() of a Result that is ok");
    return std::move(std::get<1>(value_));
  }

  Status status() const { return ok() ? Status{} : Status{std::get<1>(value_)}; }

private:
  void require() const {
    TROUPE_CHECK(ok(), ok() ? std::string_view{} : std::get<1>(value_).message);
  }
  std::variant<T, Error> value_;
};

}  // namespace troupe

#define TROUPE_CONCAT_(a, b) a##b
#define TROUPE_CONCAT(a, b) TROUPE_CONCAT_(a, b)

/// Returns the error of `expr` (a Status or Result) from the enclosing function, if it has one.
#define TROUPE_TRY(expr)                                          \
  do {                                                            \
    auto troupe_try_ = (expr);                                    \
    if (!troupe_try_.ok()) return std::move(troupe_try_).error(); \
  } while (false)

/// `TROUPE_ASSIGN(auto x, f());` binds the value, or returns the error.
#define TROUPE_ASSIGN(decl, expr) \
  TROUPE_ASSIGN_(TROUPE_CONCAT(troupe_result_, __LINE__), decl, expr)
#define TROUPE_ASSIGN_(tmp, decl, expr)         \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  decl = std::move(tmp).value()
