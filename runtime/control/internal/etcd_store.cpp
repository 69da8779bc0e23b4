#include "runtime/control/internal/etcd_store.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/control/internal/leader_name.hpp"

namespace troupe::control {
namespace {

using std::chrono::milliseconds;

constexpr Duration kPoll = milliseconds(100);
constexpr Duration kMargin = milliseconds(500);        // of a lease, for clocks and for us
constexpr Duration kRequestTime = milliseconds(1000);  // of an endpoint
constexpr Duration kGoodbye = std::chrono::seconds(2);
constexpr std::int64_t kPage = 64;  // keys of one read: at most 64 MiB
// etcd takes 128 operations and 1.5 MiB.
constexpr std::size_t kMaxChanges = 100;
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

constexpr const char* kTxn = "/v3/kv/txn";
constexpr const char* kRange = "/v3/kv/range";
constexpr const char* kGrant = "/v3/lease/grant";
constexpr const char* kKeepAlive = "/v3/lease/keepalive";
constexpr const char* kRevoke = "/v3/lease/revoke";

/// A number of fixed width, so that bytes compare as numbers do, and the name.
constexpr std::size_t kNumberDigits = 20;

std::string shown_leader(const std::vector<etcd::KeyValue>& keys) {
  if (keys.empty()) return "another";
  const std::string& value = keys.front().value;
  return shown_name(value.size() > kNumberDigits ? value.substr(kNumberDigits + 1) : "");
}

std::int64_t whole_seconds(Duration lease) {
  return std::chrono::ceil<std::chrono::seconds>(lease).count();
}

}  // namespace

EtcdStore::EtcdStore(EtcdAddress address, StoreOptions options)
    : address_(std::move(address)),
      options_(std::move(options)),
      leader_key_(address_.prefix + "/leader"),
      data_prefix_(address_.prefix + "/data/"),
      name_(leader_name(options_)),
      election_(address_.endpoints),
      writes_(address_.endpoints),
      reads_(address_.endpoints),
      writer_({.write = [this](const Changes& changes) { return write(changes); },
               .max_changes = kMaxChanges,
               .max_bytes = kMaxBytes}) {}

EtcdStore::~EtcdStore() {
  if (tenure_.check().ok()) (void)writer_.flush(kGoodbye).ok();
  writer_.stop();
  beat_.stop();
  tenure_.end();
  if (lease_ != 0) revoke(lease_);
}

std::string EtcdStore::leader_value(std::uint64_t number) const {
  return fmt::format("{:0{}} {}", number, kNumberDigits, name_);
}

TimePoint EtcdStore::end_of(const etcd::Lease& lease, TimePoint asked) const {
  return asked + std::chrono::seconds(lease.ttl_seconds) - kMargin;
}

void EtcdStore::revoke(std::int64_t lease) {
  // At best: else it ends by itself.
  const auto until = deadline_after(kRequestTime / 2);
  (void)election_.post(kRevoke, etcd::lease_request(lease), until).ok();
}

Result<EtcdStore::Attempt> EtcdStore::try_lead() {
  const auto count = static_cast<int>(address_.endpoints.size());
  const TimePoint until = deadline_after(kRequestTime * count);
  TROUPE_ASSIGN(const auto found, election_.post(kRange, etcd::range_request(leader_key_), until));
  TROUPE_ASSIGN(const auto range, etcd::parse_range(found));
  if (!range.keys.empty()) return Attempt{.other = shown_leader(range.keys)};

  const TimePoint asked = std::chrono::steady_clock::now();
  TROUPE_ASSIGN(const auto granted,
                election_.post(kGrant, etcd::grant_request(whole_seconds(options_.lease)), until));
  TROUPE_ASSIGN(const auto lease, etcd::parse_grant(granted));
  auto attempt = create_leader(lease, asked);
  // One that failed may have been done, or be done yet: without its lease it has no effect.
  if (!attempt.ok() || !attempt->leads) revoke(lease.id);
  return attempt;
}

Result<EtcdStore::Attempt> EtcdStore::create_leader(const etcd::Lease& lease, TimePoint asked) {
  etcd::Txn txn;
  txn.if_created_at(leader_key_, 0)
      .then_put(leader_key_, leader_value(0), lease.id)
      .else_get(leader_key_);
  const TimePoint until = end_of(lease, asked);
  TROUPE_ASSIGN(const auto answer, election_.post(kTxn, txn.request(), until));
  TROUPE_ASSIGN(const auto result, etcd::parse_txn(answer));
  if (!result.succeeded)
    return Attempt{.other = shown_leader(result.ranges.empty() ? std::vector<etcd::KeyValue>{}
                                                               : result.ranges.front().keys)};
  if (std::chrono::steady_clock::now() >= until)
    return {Code::unavailable,
            fmt::format("etcd takes longer than a lease of {} s to answer; look at its load, or "
                        "choose a longer lease",
                        lease.ttl_seconds)};
  lease_ = lease.id;
  term_ = result.revision;  // that of the transaction that created the key
  return Attempt{.leads = true, .until = until};
}

Result<std::uint64_t> EtcdStore::lead(Duration timeout, Lost on_lost) {
  if (tenure_.begun())
    return {Code::failed_precondition, "this store is or was led from here; open it again"};
  const TimePoint deadline = deadline_after(timeout);
  std::optional<std::string> other;
  for (;;) {
    if (cancelled_.raised())
      return {Code::cancelled,
              fmt::format("waiting to lead the store etcd:{} was cancelled", address_.prefix)};
    auto attempt = try_lead();
    if (attempt.ok() && attempt->leads) {
      begin(*attempt, std::move(on_lost));
      return static_cast<std::uint64_t>(term_);
    }
    if (attempt.ok()) {
      other = attempt->other;
    } else if (attempt.code() != Code::unavailable || !other) {
      return std::move(attempt).error();
    }
    const TimePoint now = std::chrono::steady_clock::now();
    if (now >= deadline) {
      if (!attempt.ok()) return std::move(attempt).error();
      return {Code::deadline_exceeded,
              fmt::format("the store at etcd's '{}' is led by {}; stop it, stand by for it "
                          "(`troupe head --standby`), or choose "
                          "another prefix",
                          address_.prefix, *other)};
    }
    (void)cancelled_.wait_until(std::min(deadline, now + kPoll));
  }
}

void EtcdStore::begin(const Attempt& attempt, Lost on_lost) {
  writer_.start();
  tenure_.begin(attempt.until, [this, lost = std::move(on_lost)](const Error& why) {
    writer_.abandon(why);
    if (lost) lost(why);
  });
  beat_.start(options_.lease / 3, [this] { return renew(); });
}

Duration EtcdStore::renew() {
  if (!tenure_.check().ok()) return options_.lease;
  const TimePoint asked = std::chrono::steady_clock::now();
  const auto count = static_cast<int>(address_.endpoints.size());
  const TimePoint until = std::min(tenure_.until(), asked + kRequestTime * count);
  const auto answer = election_.post(kKeepAlive, etcd::lease_request(lease_), until);
  const auto lease = answer.ok() ? etcd::parse_keep_alive(*answer) : answer.error();
  if (!lease.ok()) return kPoll;  // again soon; the tenure watches the time
  if (lease->ttl_seconds == 0) {
    tenure_.lose({Code::unavailable,
                  fmt::format("etcd ended the lease of the leader of '{}': it was revoked, or etcd "
                              "did not hear of it in time",
                              address_.prefix)});
    return options_.lease;
  }
  tenure_.extend(end_of(*lease, asked));
  return options_.lease / 3;
}

/// Ok if the transaction found this process's leader key; otherwise the lead is lost, unless etcd
/// says that it is not.
Status EtcdStore::guarded(const etcd::TxnResult& result) {
  if (result.succeeded) return {};
  if (result.ranges.empty())
    return {Code::protocol_error, "etcd's answer does not say who leads; look at what runs there"};
  const auto& keys = result.ranges.front().keys;
  if (!keys.empty() && keys.front().create_revision == term_)
    return {Code::unavailable, "etcd did a later transaction first; it will be tried again"};
  Error why{Code::failed_precondition,
            keys.empty() ? fmt::format("nobody leads '{}' in etcd any more", address_.prefix)
                         : fmt::format("'{}' in etcd is led by {} now", address_.prefix,
                                       shown_leader(keys))};
  tenure_.lose(why);
  return why;
}

Status EtcdStore::write(const Changes& changes) {
  TROUPE_TRY(tenure_.check());
  const std::string value = leader_value(++number_);
  etcd::Txn txn;
  txn.if_created_at(leader_key_, term_).if_value_less(leader_key_, value);
  txn.then_put(leader_key_, value, lease_).else_get(leader_key_);
  for (const auto& [key, change] : changes)
    change ? txn.then_put(data_prefix_ + key, *change) : txn.then_erase(data_prefix_ + key);
  const auto count = static_cast<int>(address_.endpoints.size());
  TROUPE_ASSIGN(const auto answer,
                writes_.post(kTxn, txn.request(), deadline_after(kRequestTime * count)));
  TROUPE_ASSIGN(const auto result, etcd::parse_txn(answer));
  return guarded(result);
}

Result<std::map<std::string, std::string>> EtcdStore::read() {
  std::map<std::string, std::string> entries;
  std::string from = data_prefix_;
  std::string to = data_prefix_;
  ++to.back();  // after all that begin with it
  for (bool more = true; more;) {
    TROUPE_TRY(tenure_.check());
    etcd::Txn txn;
    txn.if_created_at(leader_key_, term_).then_range(from, to, kPage).else_get(leader_key_);
    const auto count = static_cast<int>(address_.endpoints.size());
    TROUPE_ASSIGN(const auto answer,
                  reads_.post(kTxn, txn.request(), deadline_after(4 * kRequestTime * count)));
    TROUPE_ASSIGN(auto result, etcd::parse_txn(answer));
    TROUPE_TRY(guarded(result));
    if (result.ranges.empty()) return {Code::protocol_error, "etcd's answer has no keys"};
    more = result.ranges.front().more;
    for (auto& [key, value, revision, lease] : result.ranges.front().keys) {
      if (key < from || !key.starts_with(data_prefix_))
        return {Code::protocol_error, "etcd answers with keys that were not asked for"};
      from = key + '\0';
      entries.insert_or_assign(key.substr(data_prefix_.size()), std::move(value));
    }
    if (more && result.ranges.front().keys.empty())
      return {Code::protocol_error, "etcd promises more keys and has none"};
  }
  return entries;
}

void EtcdStore::put(std::string key, std::string value) {
  writer_.put(std::move(key), std::move(value));
}

void EtcdStore::erase(std::string key) {
  writer_.put(std::move(key), std::nullopt);
}

}  // namespace troupe::control
