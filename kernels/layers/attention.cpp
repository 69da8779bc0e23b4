#include "kernels/layers/attention.hpp"

#include <fmt/format.h>

#include "kernels/layers/internal/checks.hpp"

namespace troupe::kernels {

Result<Shape> Attention::output_shape(std::span<const Shape> inputs) const {
  const std::string what = describe();
  TROUPE_TRY(layers::require_inputs(what, inputs, 1));
  TROUPE_TRY(layers::require_size(what, "heads", heads, 1));
  TROUPE_TRY(layers::require_size(what, "kv_heads", kv_heads, 0));
  if (heads % key_heads() != 0)
    return Error{Code::invalid_argument,
                 fmt::format("{}: heads is {}, but must be a multiple of its kv_heads, {}", what,
                             heads, kv_heads)};
  TROUPE_TRY(layers::require_tokens(what, inputs[0]));
  const std::int64_t parts = heads + 2 * key_heads();
  if (inputs[0][1] % parts != 0)
    return Error{Code::shape_mismatch,
                 fmt::format("{}: input {} is no [tokens, {} * head_dim], the queries of {} heads "
                             "and keys and values of {}",
                             what, to_string(inputs[0]), parts, heads, key_heads())};
  return Shape{inputs[0][0], inputs[0][1] / parts * heads};
}

}  // namespace troupe::kernels
