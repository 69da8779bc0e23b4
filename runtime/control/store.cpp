#include "runtime/control/store.hpp"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/control/internal/address.hpp"
#include "runtime/control/internal/etcd_store.hpp"
#include "runtime/control/internal/sqlite_store.hpp"

namespace troupe::control {

Status StoreOptions::validate() const {
  if (lease >= std::chrono::seconds(1) && lease <= std::chrono::hours(1)) return {};
  return {Code::invalid_argument,
          fmt::format("a store's lease of {} ms: choose one of 1 s to 1 h",
                      std::chrono::duration_cast<std::chrono::milliseconds>(lease).count())};
}

Result<std::unique_ptr<Store>> open_store(const std::string& address, StoreOptions options) {
  TROUPE_TRY(options.validate());
  TROUPE_ASSIGN(auto parsed, parse_address(address));
  if (auto* sqlite = std::get_if<SqliteAddress>(&parsed))
    return std::unique_ptr<Store>(
        std::make_unique<SqliteStore>(std::move(sqlite->path), std::move(options)));
  return std::unique_ptr<Store>(
      std::make_unique<EtcdStore>(std::get<EtcdAddress>(std::move(parsed)), std::move(options)));
}

}  // namespace troupe::control
