#include "runtime/control/internal/etcd_messages.hpp"

#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/control/internal/base64.hpp"
#include "runtime/control/internal/leader_name.hpp"

namespace troupe::control::etcd {
namespace {

using Json = nlohmann::json;

Error bad_answer(std::string_view what, std::string_view text) {
  return Error{
      Code::protocol_error,
      fmt::format("etcd's answer makes no sense ({}): \"{}\"; is it etcd 3.4 or later that "
                  "listens there?",
                  what, shown_name(text))};
}

Result<Json> parse(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return bad_answer("not a JSON object", text);
}

/// A member; null if it is not there, which is how the gateway writes zeros and empty lists.
const Json& member(const Json& object, const char* name) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

/// 64-bit numbers come as strings.
Result<std::int64_t> number(const Json& object, const char* name) {
  const Json& json = member(object, name);
  if (json.is_null()) return std::int64_t{0};
  if (json.is_number_integer() &&
      !(json.is_number_unsigned() && json.get<std::uint64_t>() > INT64_MAX))
    return json.get<std::int64_t>();
  if (const auto* digits = json.get_ptr<const std::string*>()) {
    std::int64_t value = 0;
    const char* const end = digits->data() + digits->size();
    const auto [last, error] = std::from_chars(digits->data(), end, value);
    if (error == std::errc{} && last == end) return value;
  }
  return bad_answer(fmt::format("'{}' is no number", name), {});
}

Result<std::string> bytes(const Json& object, const char* name) {
  const Json& json = member(object, name);
  if (json.is_null()) return std::string();
  if (const auto* text = json.get_ptr<const std::string*>()) return from_base64(*text);
  return bad_answer(fmt::format("'{}' is no string", name), {});
}

Result<bool> truth(const Json& object, const char* name) {
  const Json& json = member(object, name);
  if (json.is_null()) return false;
  if (json.is_boolean()) return json.get<bool>();
  return bad_answer(fmt::format("'{}' is neither true nor false", name), {});
}

Result<Lease> to_lease(const Json& json) {
  Lease lease;
  TROUPE_ASSIGN(lease.id, number(json, "ID"));
  TROUPE_ASSIGN(lease.ttl_seconds, number(json, "TTL"));
  // An hour is the most that we ask for; the bound keeps sums of it in range.
  if (lease.ttl_seconds < 0) lease.ttl_seconds = 0;
  if (lease.id == 0 || lease.ttl_seconds > 1'000'000) return bad_answer("no lease", json.dump());
  return lease;
}

Result<KeyValue> to_key_value(const Json& json) {
  if (!json.is_object()) return bad_answer("a key that is no object", {});
  KeyValue result;
  TROUPE_ASSIGN(result.key, bytes(json, "key"));
  TROUPE_ASSIGN(result.value, bytes(json, "value"));
  TROUPE_ASSIGN(result.create_revision, number(json, "create_revision"));
  TROUPE_ASSIGN(result.lease, number(json, "lease"));
  return result;
}

Result<Range> to_range(const Json& json) {
  Range range;
  TROUPE_ASSIGN(range.more, truth(json, "more"));
  const Json& keys = member(json, "kvs");
  if (!keys.is_null() && !keys.is_array()) return bad_answer("'kvs' is no list", {});
  for (const Json& key : keys) {
    TROUPE_ASSIGN(auto value, to_key_value(key));
    range.keys.push_back(std::move(value));
  }
  return range;
}

void append(std::string& list, const std::string& item) {
  if (!list.empty()) list += ',';
  list += item;
}

std::string get_operation(std::string_view key) {
  return fmt::format(R"({{"request_range":{{"key":"{}"}}}})", to_base64(key));
}

}  // namespace

std::string grant_request(std::int64_t ttl_seconds) {
  return fmt::format(R"({{"TTL":"{}"}})", ttl_seconds);
}

std::string lease_request(std::int64_t id) {
  return fmt::format(R"({{"ID":"{}"}})", id);
}

std::string range_request(std::string_view key) {
  return fmt::format(R"({{"key":"{}"}})", to_base64(key));
}

Result<Lease> parse_grant(std::string_view text) {
  TROUPE_ASSIGN(const Json json, parse(text));
  return to_lease(json);
}

Result<Lease> parse_keep_alive(std::string_view text) {
  TROUPE_ASSIGN(const Json json, parse(text));
  // A stream's answers are wrapped; an error comes in place of the result.
  if (const Json& error = member(json, "error"); !error.is_null())
    return parse_refusal(200, error.is_object() ? error.dump() : std::string(text));
  return to_lease(member(json, "result"));
}

Result<Range> parse_range(std::string_view text) {
  TROUPE_ASSIGN(const Json json, parse(text));
  return to_range(json);
}

Txn& Txn::if_created_at(std::string_view key, std::int64_t revision) {
  append(compares_,
         fmt::format(R"({{"key":"{}","target":"CREATE","result":"EQUAL","create_revision":"{}"}})",
                     to_base64(key), revision));
  return *this;
}

Txn& Txn::if_value_less(std::string_view key, std::string_view value) {
  append(compares_, fmt::format(R"({{"key":"{}","target":"VALUE","result":"LESS","value":"{}"}})",
                                to_base64(key), to_base64(value)));
  return *this;
}

Txn& Txn::then_put(std::string_view key, std::string_view value, std::int64_t lease) {
  append(thens_, fmt::format(R"({{"request_put":{{"key":"{}","value":"{}","lease":"{}"}}}})",
                             to_base64(key), to_base64(value), lease));
  return *this;
}

Txn& Txn::then_erase(std::string_view key) {
  append(thens_, fmt::format(R"({{"request_delete_range":{{"key":"{}"}}}})", to_base64(key)));
  return *this;
}

Txn& Txn::then_range(std::string_view from, std::string_view to, std::int64_t limit) {
  append(thens_, fmt::format(R"({{"request_range":{{"key":"{}","range_end":"{}","limit":"{}"}}}})",
                             to_base64(from), to_base64(to), limit));
  return *this;
}

Txn& Txn::else_get(std::string_view key) {
  append(elses_, get_operation(key));
  return *this;
}

std::string Txn::request() const {
  return fmt::format(R"({{"compare":[{}],"success":[{}],"failure":[{}]}})", compares_, thens_,
                     elses_);
}

Result<TxnResult> parse_txn(std::string_view text) {
  TROUPE_ASSIGN(const Json json, parse(text));
  TxnResult result;
  TROUPE_ASSIGN(result.succeeded, truth(json, "succeeded"));
  TROUPE_ASSIGN(result.revision, number(member(json, "header"), "revision"));
  if (result.revision <= 0) return bad_answer("no revision", text);
  const Json& responses = member(json, "responses");
  if (!responses.is_null() && !responses.is_array())
    return bad_answer("'responses' is no list", text);
  for (const Json& response : responses) {
    const Json& range = member(response, "response_range");
    if (range.is_null()) continue;
    TROUPE_ASSIGN(auto keys, to_range(range));
    result.ranges.push_back(std::move(keys));
  }
  return result;
}

Error parse_refusal(int http_status, std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::int64_t code = -1;
  std::string said(text);
  for (const char* name : {"code", "grpc_code"})
    if (const auto found = number(json, name); found.ok() && *found != 0) code = *found;
  for (const char* name : {"error", "message"})
    if (const auto* found = member(json, name).get_ptr<const std::string*>()) said = *found;
  said = shown_name(said);

  // The numbers of gRPC's status codes.
  switch (code) {
    case 3:
      return {Code::invalid_argument, fmt::format("etcd refuses the request: {}", said)};
    case 5:
      return {Code::not_found, fmt::format("etcd does not know what was named: {}", said)};
    case 7:
    case 16:
      return {Code::permission_denied,
              fmt::format("etcd does not let this process in: {}; Troupe has no user there, allow "
                          "the prefix to all",
                          said)};
    case 8:
      return {Code::resource_exhausted,
              fmt::format("etcd has no space: {}; compact it or raise its quota", said)};
    case 1:
    case 4:
    case 14:
      return {Code::unavailable,
              fmt::format("etcd cannot serve now: {}; look at its members", said)};
    default:
      break;
  }
  if (http_status >= 500)
    return {Code::unavailable,
            fmt::format("etcd cannot serve now (HTTP {}): {}; look at its log", http_status, said)};
  return bad_answer(fmt::format("HTTP {}", http_status), said);
}

}  // namespace troupe::control::etcd
