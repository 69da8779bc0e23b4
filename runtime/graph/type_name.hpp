#pragma once

#include <string_view>

namespace troupe::graph {

/// T as source code names it: "app::Batch". For people; compilers differ in the spelling of
/// standard types and unnamed namespaces.
template <class T>
constexpr std::string_view type_name() {
  constexpr std::string_view here = __PRETTY_FUNCTION__;
  constexpr std::string_view mark = "T = ";
  constexpr std::size_t begin = here.find(mark) + mark.size();
  // GCC appends what std::string_view is, Clang does not.
  constexpr std::size_t semicolon = here.find(';', begin);
  constexpr std::size_t end = semicolon != std::string_view::npos ? semicolon : here.rfind(']');
  return here.substr(begin, end - begin);
}

}  // namespace troupe::graph
