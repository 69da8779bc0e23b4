#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/message.hpp>
#include <caf/type_erased_tuple.hpp>

#include "runtime/remoting/internal/wire.hpp"

namespace troupe::remoting {

// A message's content on the wire: its element types by name, joined by '+', then the elements.
// CAF makes up and takes apart that text for every message; here both sides remember it.

/// Writes contents. Threads: one; each sending thread has its own.
class ContentWriter {
public:
  /// Errors: caf::sec::unknown_type with the type's name (it was not added to the configuration),
  /// caf::sec::invalid_argument for what does not travel between nodes (streams, groups).
  caf::error write(const caf::actor_system& system, WireWriter& sink,
                   const caf::type_erased_tuple& content);

private:
  struct Shape {
    std::vector<caf::rtti_pair> types;
    std::string names;
  };
  static caf::error describe(const caf::actor_system& system, const caf::type_erased_tuple& content,
                             Shape& shape);

  std::unordered_map<std::uint64_t, Shape> shapes_;  ///< by a hash of the types
};

/// Reads contents. Threads: one.
class ContentReader {
public:
  explicit ContentReader(const caf::actor_system& system) : system_(system) {}

  /// Errors: caf::sec::unknown_type with the name, caf::sec::end_of_stream, what a type's own
  /// inspection says.
  caf::error read(WireReader& source, caf::message& content);

private:
  using Factory = std::function<caf::type_erased_value_ptr()>;
  using Shape = std::vector<Factory>;

  Factory find_factory(const std::string& name) const;
  caf::error find(std::string_view names, const Shape*& shape);

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  const caf::actor_system& system_;
  std::unordered_map<std::string, Shape, Hash, std::equal_to<>> shapes_;
};

}  // namespace troupe::remoting
