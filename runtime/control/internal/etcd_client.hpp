#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.hpp"
#include "runtime/base/mutex.hpp"
#include "runtime/base/status.hpp"
#include "runtime/control/internal/address.hpp"

namespace troupe::control {

/// Posts requests to whichever endpoint of an etcd cluster answers, beginning with the last that
/// did, over one connection.
///
/// Threads: any, one after the other: what must not wait for another request has its own client.
/// Failure: `unavailable` when no endpoint answered in time, which leaves open whether the request
///          was done; what etcd refused as etcd::parse_refusal().
class EtcdClient {
public:
  /// At least one endpoint.
  explicit EtcdClient(std::vector<Endpoint> endpoints);
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  /// The body of the answer. `path` as "/v3/kv/txn". Each endpoint gets its share of the time.
  Result<std::string> post(const char* path, const std::string& body, TimePoint deadline);

private:
  struct Http;

  Result<std::string> post_once(const char* path, const std::string& body, TimePoint deadline)
      TROUPE_REQUIRES(mutex_);

  const std::vector<Endpoint> endpoints_;
  Mutex mutex_;
  std::size_t current_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Http> http_ TROUPE_GUARDED_BY(mutex_);  ///< to the current one; null for none
};

}  // namespace troupe::control
