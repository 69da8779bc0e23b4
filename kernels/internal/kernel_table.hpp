#pragma once

#include <span>

#include "kernels/dtype.hpp"
#include "kernels/operation.hpp"

namespace troupe::kernels {

/// A line of a backend's table: what makes kernels of that operation, whose products have factors
/// of that type.
template <class Maker>
struct KernelEntry {
  Operation operation;
  DType dtype;
  Maker maker;
};

/// The maker of a kernel, or null.
template <class Maker>
constexpr Maker find_maker(std::span<const KernelEntry<Maker>> table, Operation operation,
                           DType dtype) noexcept {
  for (const KernelEntry<Maker>& entry : table)
    if (entry.operation == operation && entry.dtype == dtype) return entry.maker;
  return nullptr;
}

}  // namespace troupe::kernels
