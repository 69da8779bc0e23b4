#include "kernels/dtype.hpp"

#include "runtime/base/check.hpp"

namespace troupe::kernels {

std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
      return 1;
  }
  TROUPE_CHECK(false, "size_of a DType outside its list");
}

std::string_view to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
  }
  return "unknown";
}

std::string_view to_string(Device device) noexcept {
  switch (device) {
    case Device::cpu:
      return "cpu";
    case Device::cuda:
      return "cuda";
    case Device::simulated:
      return "simulated";
  }
  return "unknown";
}

}  // namespace troupe::kernels
