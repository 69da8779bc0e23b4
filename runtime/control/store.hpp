#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runtime/base/clock.hpp"
#include "runtime/base/status.hpp"

namespace troupe::control {

// Bounds of what a store takes. etcd refuses requests of more than 1.5 MiB.
inline constexpr std::size_t kMaxKeyBytes = 1024;
inline constexpr std::size_t kMaxValueBytes = std::size_t{1} << 20;

struct StoreOptions {
  std::string leader;  ///< who this is, name or address, for the errors of those that wait
  /// How long a leader that is not heard of still counts as one: the shorter, the sooner another
  /// takes over and the shorter an outage of the store that a leader survives. 1 s to 1 h; etcd
  /// counts in whole seconds (rounded up) and grants 2 s at least. A file's lock ends with its
  /// process: at once, and not before.
  Duration lease = std::chrono::seconds(2);

  /// Error: `invalid_argument` with the value and the bounds.
  Status validate() const;
};

/// What a cluster's head must not lose, outside the head: small values by key. One process leads a
/// store at a time, and only the leader reads and writes.
///
/// Writes are queued and written by a thread of the store, soon and in order: a later value for a
/// key replaces one that waits. What is written together (all that waits; with etcd up to 100 keys
/// and 1 MiB) is there as a whole or not at all. A write that fails is tried again for as long as
/// this process leads. Every write is conditional on that, in the store itself: one that was
/// paused and overtaken changes nothing.
///
/// Ownership: keys and values are copied in and out.
/// Threads:   any, except that lead() is for one at a time, and that nobody may be inside a method
///            when the store is destroyed (see cancel()).
/// Failure:   a store that has lost its lead, or was cancelled, is of no more use: open another.
class Store {
public:
  using Lost = std::function<void(const Error&)>;

  /// Writes what waits, for at most 2 s, and resigns: another may lead at once. A request to etcd
  /// that is under way then takes at most another second per endpoint.
  virtual ~Store() = default;

  /// Becomes the leader, waiting at most `timeout` for another's end. Returns the term: greater
  /// than that of every leader before.
  ///
  /// `on_lost` is called once, from a thread of the store, when this process leads no more although
  /// it did not resign: its lease was not renewed in time, or somebody took it away. With etcd it
  /// comes before another can lead. It must not destroy the store.
  ///
  /// Errors: `deadline_exceeded` naming who leads; `cancelled`; `unavailable` when the store cannot
  /// be reached, at once if it never could; `not_found`, `permission_denied`, `io_error` for a file
  /// that cannot be opened or written; `corrupt_data`, `version_mismatch` for what is in it;
  /// `protocol_error` for answers that make no sense; `failed_precondition` if it leads or led.
  virtual Result<std::uint64_t> lead(Duration timeout, Lost on_lost) = 0;

  /// Lets lead() return `cancelled`: within the time of one request, a second at most per endpoint.
  virtual void cancel() = 0;

  /// All keys and values that are written; flush() first for those that wait. Errors:
  /// `failed_precondition` if it does not lead, `unavailable`, `corrupt_data`.
  virtual Result<std::map<std::string, std::string>> read() = 0;

  /// Never waits. What is put by who does not lead, or exceeds the bounds above, is dropped, and
  /// flush() says so.
  virtual void put(std::string key, std::string value) = 0;
  /// As put(). A key that is not there is fine.
  virtual void erase(std::string key) = 0;

  /// Waits until all that was put before is written. Errors: why the last write failed;
  /// `deadline_exceeded`; `invalid_argument`, once, if something was dropped; why it does not lead.
  virtual Status flush(Duration timeout) = 0;
};

/// The store at an address: "sqlite:PATH", or a plain path, is a file of this machine, with a lock
/// beside it (PATH.lock); "etcd://HOST:PORT[,HOST:PORT...]/PREFIX" is a cluster of etcd 3.4 or
/// later, whose keys begin with PREFIX. Touches neither before lead().
/// Error: `invalid_argument` with the address and the forms, or of the options.
Result<std::unique_ptr<Store>> open_store(const std::string& address, StoreOptions options = {});

}  // namespace troupe::control
