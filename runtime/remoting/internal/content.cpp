#include "runtime/remoting/internal/content.hpp"

#include <algorithm>
#include <array>

#include <caf/actor_system_config.hpp>
#include <caf/detail/dynamic_message_data.hpp>
#include <caf/make_counted.hpp>
#include <caf/sec.hpp>
#include <caf/uniform_type_info_map.hpp>

namespace troupe::remoting {
namespace {

/// What is remembered of shapes before everything is forgotten: the other side names them.
constexpr std::size_t kMaxShapes = 1024;

/// CAF handles these by who sends them and when, and trusts what it gets.
constexpr std::array<std::string_view, 5> kRefused = {"@downstream_msg", "@group", "@group_down",
                                                      "@open_stream_msg", "@upstream_msg"};

bool refused(std::string_view name) {
  return std::ranges::find(kRefused, name) != kRefused.end();
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 32);
}

}  // namespace

caf::error ContentWriter::describe(const caf::actor_system& system,
                                   const caf::type_erased_tuple& content, Shape& shape) {
  shape = {};
  const auto& names = system.types();
  for (std::size_t i = 0; i < content.size(); ++i) {
    const auto type = content.type(i);
    const auto& name = names.portable_name(type);
    if (name == names.default_type_name())
      return caf::make_error(caf::sec::unknown_type,
                             std::string(type.second != nullptr ? type.second->name() : "?"));
    if (refused(name)) return caf::make_error(caf::sec::invalid_argument, name);
    if (i != 0) shape.names += '+';
    shape.names += name;
    shape.types.push_back(type);
  }
  return {};
}

caf::error ContentWriter::write(const caf::actor_system& system, WireWriter& sink,
                                const caf::type_erased_tuple& content) {
  const auto n = content.size();
  auto hash = mix(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const auto type = content.type(i);
    hash = mix(hash, type.first != 0 ? type.first : reinterpret_cast<std::uintptr_t>(type.second));
  }
  if (shapes_.size() > kMaxShapes) shapes_.clear();
  auto [found, added] = shapes_.try_emplace(hash);
  auto& shape = found->second;
  auto same = !added && shape.types.size() == n;
  for (std::size_t i = 0; same && i < n; ++i) same = shape.types[i] == content.type(i);
  if (!same) {
    if (auto error = describe(system, content, shape)) {
      shapes_.erase(found);
      return error;
    }
  }
  sink.write_string(shape.names);
  for (std::size_t i = 0; i < n; ++i)
    if (auto error = content.save(i, sink)) return error;
  return {};
}

ContentReader::Factory ContentReader::find_factory(const std::string& name) const {
  const char** const end = caf::numbered_type_names + caf::type_nrs - 1;
  if (const auto* builtin = std::find(caf::numbered_type_names + 0, end, name); builtin != end) {
    const auto number = static_cast<std::uint16_t>(builtin - caf::numbered_type_names + 1);
    return [&types = system_.types(), number] { return types.make_value(number); };
  }
  const auto& by_name = system_.config().value_factories_by_name;
  const auto custom = by_name.find(name);
  return custom != by_name.end() ? Factory(custom->second) : Factory();
}

caf::error ContentReader::find(std::string_view names, const Shape*& shape) {
  if (auto found = shapes_.find(names); found != shapes_.end()) {
    shape = &found->second;
    return {};
  }
  Shape factories;
  for (auto rest = names; !rest.empty();) {
    const std::string name(rest.substr(0, rest.find('+')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (refused(name)) return caf::make_error(caf::sec::unknown_type, name);
    auto factory = find_factory(name);
    if (!factory) return caf::make_error(caf::sec::unknown_type, name);
    factories.push_back(std::move(factory));
  }
  if (shapes_.size() > kMaxShapes) shapes_.clear();
  shape = &shapes_.emplace(names, std::move(factories)).first->second;
  return {};
}

caf::error ContentReader::read(WireReader& source, caf::message& content) {
  std::string_view names;
  if (auto error = source.read_string(names)) return error;
  if (names.empty()) {
    content.reset();
    return {};
  }
  const Shape* shape = nullptr;
  if (auto error = find(names, shape)) return error;
  caf::detail::dynamic_message_data::elements elements;
  elements.reserve(shape->size());
  for (const auto& make : *shape) {
    elements.push_back(make());
    if (auto error = elements.back()->load(source)) return error;
  }
  auto data = caf::make_counted<caf::detail::dynamic_message_data>(std::move(elements));
  content = caf::message{caf::detail::message_data::cow_ptr{std::move(data)}};
  return {};
}

}  // namespace troupe::remoting
