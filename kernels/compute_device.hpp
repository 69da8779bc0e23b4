#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/dtype.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::kernels {

class Backend;

/// Which device: "cpu", "cuda" (the first), "cuda:1", "simulated:7".
struct DeviceName {
  Device kind = Device::cpu;
  std::uint32_t number = 0;  ///< which of its kind; a simulated one's seed

  /// Errors: `invalid_argument` naming the text and what there is.
  static Result<DeviceName> parse(std::string_view text);
  bool operator==(const DeviceName&) const = default;
};
/// As `parse` takes it; the number is left out where it is 0.
std::string to_string(const DeviceName& name);

/// A device's memory as this process uses it, in bytes.
struct MemoryStatistics {
  std::size_t used = 0;       ///< in buffers that somebody has
  std::size_t most_used = 0;  ///< since the device was opened
  std::size_t held = 0;       ///< taken from the device: used, or kept for the next buffer
  std::size_t most_held = 0;
  std::size_t free = 0;   ///< that the device has left, for all processes; 0 if it does not say
  std::size_t total = 0;  ///< that it has; 0 if it does not say
  std::uint64_t allocations = 0;  ///< buffers asked for
  std::uint64_t reused = 0;       ///< of them, those given from what was held
};

/// A device that was opened: its memory, its streams, its kernels.
///
/// Ownership: copies share it; workspaces and buffers keep it open.
/// Threads:   any.
class ComputeDevice {
public:
  /// The CPU.
  ComputeDevice();
  /// Errors: `not_supported` for a kind that is not built in, `not_found` for a number that the
  /// machine does not have, `unavailable` if its driver refuses.
  static Result<ComputeDevice> open(const DeviceName& name);

  const DeviceName& name() const noexcept;
  Device kind() const noexcept { return name().kind; }

  /// Uninitialised memory of the device: what the host may not touch, but on the CPU. Errors:
  /// `resource_exhausted` with what was asked, held and free.
  Result<Buffer> allocate(std::size_t bytes) const;
  /// Uninitialised memory of the host that the device copies from and to at its full speed.
  Result<Buffer> allocate_staging(std::size_t bytes) const;

  MemoryStatistics memory() const;
  /// Gives what is held and not used back to the device.
  void trim() const;

  // For the library's own use.
  explicit ComputeDevice(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}
  Backend& backend() const noexcept { return *backend_; }

private:
  std::shared_ptr<Backend> backend_;
};

}  // namespace troupe::kernels
