#pragma once

#include <string>

#include <caf/atom.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

#include "runtime/base/status.hpp"

namespace troupe::remoting {

/// Category of our errors among CAF's.
inline constexpr caf::atom_value kErrorCategory = caf::atom("troupe");

/// Our Error as the reason of a CAF response, down or exit message; travels between nodes.
inline caf::error to_caf(const Error& error) {
  return caf::error(static_cast<std::uint8_t>(error.code), kErrorCategory,
                    caf::make_message(error.message));
}

/// Back again. An error of CAF's own becomes the code that fits and CAF's text for it.
inline Error from_caf(const caf::error& error) {
  if (error.category() == kErrorCategory) {
    std::string text;
    if (error.context().match_elements<std::string>())
      text = error.context().get_as<std::string>(0);
    return Error{static_cast<Code>(error.code()), std::move(text)};
  }
  if (error == caf::exit_reason::remote_link_unreachable)
    return Error{Code::unavailable, "the actor's node is gone"};
  if (error == caf::sec::request_receiver_down)
    return Error{Code::unavailable, "the actor has ended"};
  if (error == caf::sec::request_timeout)
    return Error{Code::deadline_exceeded, "no response within the request's time"};
  if (error.category() == caf::atom("exit"))
    return Error{Code::unavailable,
                 "the actor has ended (" +
                     caf::to_string(static_cast<caf::exit_reason>(error.code())) + ")"};
  if (error.category() == caf::atom("system"))
    return Error{Code::internal, caf::to_string(static_cast<caf::sec>(error.code()))};
  return Error{Code::internal,
               caf::to_string(error.category()) + " error " + std::to_string(error.code())};
}

}  // namespace troupe::remoting
