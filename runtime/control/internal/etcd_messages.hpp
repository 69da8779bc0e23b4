#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.hpp"

namespace troupe::control::etcd {

// What is said to etcd's HTTP/JSON gateway and what it answers, as structs. No I/O. What cannot be
// read as an answer is a `protocol_error` with its beginning.

struct Lease {
  std::int64_t id = 0;
  std::int64_t ttl_seconds = 0;  ///< what etcd grants, which may be more; 0 when it is gone
};

struct KeyValue {
  std::string key;
  std::string value;
  std::int64_t create_revision = 0;
  std::int64_t lease = 0;  ///< 0 for none
};
/// The keys of one range, in order.
struct Range {
  std::vector<KeyValue> keys;
  bool more = false;  ///< there are others after the last
};

std::string grant_request(std::int64_t ttl_seconds);
std::string lease_request(std::int64_t id);  ///< to keep it alive, or to revoke it
std::string range_request(std::string_view key);

Result<Lease> parse_grant(std::string_view text);
Result<Lease> parse_keep_alive(std::string_view text);
Result<Range> parse_range(std::string_view text);

/// A transaction: if all comparisons hold, the one list of operations, else the other.
class Txn {
public:
  /// Revision 0: the key is not there.
  Txn& if_created_at(std::string_view key, std::int64_t revision);
  /// As bytes.
  Txn& if_value_less(std::string_view key, std::string_view value);
  Txn& then_put(std::string_view key, std::string_view value, std::int64_t lease = 0);
  Txn& then_erase(std::string_view key);
  /// Keys from `from` to before `to`, at most `limit`.
  Txn& then_range(std::string_view from, std::string_view to, std::int64_t limit);
  Txn& else_get(std::string_view key);
  std::string request() const;

private:
  std::string compares_;
  std::string thens_;
  std::string elses_;
};

struct TxnResult {
  bool succeeded = false;
  std::int64_t revision = 0;  ///< of the whole etcd, after it
  std::vector<Range> ranges;  ///< of the list that was done
};
Result<TxnResult> parse_txn(std::string_view text);

/// What an answer other than 200 says. Codes: `permission_denied`, `resource_exhausted`,
/// `invalid_argument`, `not_found` and `unavailable` as etcd means them, else `protocol_error`.
Error parse_refusal(int http_status, std::string_view text);

}  // namespace troupe::control::etcd
