#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::kernels {

/// What an element is. The numbers go on the wire and to disk, and are never reused.
enum class DType : std::uint8_t {
  f32 = 0,
  u8 = 1,
  i32 = 2,
  bf16 = 3,  ///< the upper half of an f32
  f16 = 4,   ///< IEEE 754's half precision
};

/// Bytes of one element.
std::size_t size_of(DType dtype) noexcept;
/// "f32", "u8", "i32", "bf16", "f16".
std::string_view to_string(DType dtype) noexcept;

/// The DType of a C++ type: `kDTypeOf<float> == DType::f32`.
template <class T>
inline constexpr DType kDTypeOf = [] {
  static_assert(sizeof(T) == 0, "no DType for this C++ type");
  return DType{};
}();
template <>
inline constexpr DType kDTypeOf<float> = DType::f32;
template <>
inline constexpr DType kDTypeOf<std::uint8_t> = DType::u8;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::i32;

/// Where a tensor is computed on.
enum class Device : std::uint8_t {
  cpu = 0,
  cuda = 1,
  simulated = 2,  ///< an accelerator made of the CPU's kernels, whose work runs late: for tests
};
/// "cpu", "cuda", "simulated".
std::string_view to_string(Device device) noexcept;

}  // namespace troupe::kernels
