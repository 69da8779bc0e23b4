#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/mutex.hpp"
#include "runtime/control/internal/address.hpp"
#include "runtime/control/internal/etcd_client.hpp"
#include "runtime/control/internal/etcd_messages.hpp"
#include "runtime/control/internal/tenure.hpp"
#include "runtime/control/internal/wait.hpp"
#include "runtime/control/internal/writer.hpp"
#include "runtime/control/store.hpp"

namespace troupe::control {

/// A store in etcd. Who created PREFIX/leader leads, for as long as the key's lease is kept alive;
/// the key's creation revision is the term, and the entries are PREFIX/data/KEY.
///
/// A lease is counted from the moment at which its renewal was asked for, and given up half a
/// second before its end, so that this process knows first. Every transaction requires that the
/// leader's key is still this process's, and that its value is below the transaction's number: a
/// request whose answer was lost and that etcd does late changes nothing.
class EtcdStore final : public Store {
public:
  EtcdStore(EtcdAddress address, StoreOptions options);
  ~EtcdStore() override;

  Result<std::uint64_t> lead(Duration timeout, Lost on_lost) override;
  void cancel() override { cancelled_.raise(); }
  Result<std::map<std::string, std::string>> read() override;
  void put(std::string key, std::string value) override;
  void erase(std::string key) override;
  Status flush(Duration timeout) override { return writer_.flush(timeout); }

private:
  /// What an attempt to lead found.
  struct Attempt {
    bool leads = false;
    TimePoint until{};    ///< if it leads
    std::string other{};  ///< who does, if not
  };

  Result<Attempt> try_lead();
  Result<Attempt> create_leader(const etcd::Lease& lease, TimePoint asked);
  void begin(const Attempt& attempt, Lost on_lost);
  Duration renew();
  Status write(const Changes& changes);
  Status guarded(const etcd::TxnResult& result);
  std::string leader_value(std::uint64_t number) const;
  TimePoint end_of(const etcd::Lease& lease, TimePoint asked) const;
  void revoke(std::int64_t lease);

  const EtcdAddress address_;
  const StoreOptions options_;
  const std::string leader_key_;
  const std::string data_prefix_;
  const std::string name_;
  Interrupt cancelled_;
  EtcdClient election_;  ///< of lead(), then of the beat
  EtcdClient writes_;
  EtcdClient reads_;
  // Set by lead() before the threads start.
  std::int64_t lease_ = 0;
  std::int64_t term_ = 0;
  std::uint64_t number_ = 0;  ///< of the newest transaction; of the writer's thread
  Tenure tenure_;
  Writer writer_;
  Beat beat_;
};

}  // namespace troupe::control
