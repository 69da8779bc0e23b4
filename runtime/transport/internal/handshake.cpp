#include "runtime/transport/internal/handshake.hpp"

#include <algorithm>
#include <cstring>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "schemas/handshake.capnp.h"

namespace troupe::transport {
namespace {

constexpr std::size_t kMaxText = 256;
constexpr std::size_t kMaxReason = 1024;

Bytes encode(capnp::MessageBuilder& builder) {
  const auto words = capnp::messageToFlatArray(builder);
  const auto bytes = words.asBytes();
  Bytes out(bytes.size());
  std::memcpy(out.data(), bytes.begin(), bytes.size());
  return out;
}

/// Calls `read` with the message. Cap'n Proto reports what is malformed by exceptions.
template <class Read>
Status decode(std::span<const std::byte> message, Read&& read) {
  try {
    auto words = kj::heapArray<capnp::word>(message.size() / sizeof(capnp::word));
    if (words.size() != 0) std::memcpy(words.begin(), message.data(), words.asBytes().size());
    capnp::FlatArrayMessageReader reader(words);
    return read(reader.getRoot<schema::Handshake>());
  } catch (const kj::Exception&) {
    return Error{Code::protocol_error,
                 fmt::format("a handshake message of {} bytes is malformed", message.size())};
  }
}

kj::ArrayPtr<const kj::byte> as_data(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> as_bytes(capnp::Data::Reader data) {
  return {reinterpret_cast<const std::byte*>(data.begin()), data.size()};
}

/// Text of the other side goes into our messages and logs: bounded, and printable only.
std::string clean(capnp::Text::Reader text, std::size_t limit) {
  std::string out(text.cStr(), std::min<std::size_t>(text.size(), limit));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return out;
}

Greeting read_greeting(schema::Handshake::Hello::Reader hello) {
  Greeting greeting;
  greeting.protocol = hello.getProtocol();
  greeting.node = NodeId{hello.getNode().getHigh(), hello.getNode().getLow()};
  greeting.name = clean(hello.getName(), kMaxText);
  greeting.build = clean(hello.getBuild(), kMaxText);
  greeting.process = hello.getProcess();
  greeting.host = clean(hello.getHost(), kMaxText);
  greeting.listens_at = Address{clean(hello.getListenHost(), kMaxText), hello.getListenPort()};
  const auto nonce = as_bytes(hello.getNonce());
  if (nonce.size() == greeting.nonce.size())
    std::copy(nonce.begin(), nonce.end(), greeting.nonce.begin());
  return greeting;
}

Error unexpected(std::string_view what) {
  return Error{Code::protocol_error, fmt::format("the handshake's {} came out of turn", what)};
}

}  // namespace

Handshake::Handshake(Role role, Greeting self, std::string token)
    : role_(role), self_(std::move(self)), token_(std::move(token)) {
  capnp::MallocMessageBuilder builder;
  auto hello = builder.initRoot<schema::Handshake>().initHello();
  hello.setProtocol(self_.protocol);
  hello.initNode().setHigh(self_.node.high);
  hello.getNode().setLow(self_.node.low);
  hello.setNonce(as_data(self_.nonce));
  hello.setName(self_.name);
  hello.setBuild(self_.build);
  hello.setProcess(self_.process);
  hello.setHost(self_.host);
  hello.setListenHost(self_.listens_at.host);
  hello.setListenPort(self_.listens_at.port);
  hello.setHasToken(!token_.empty());
  (role_ == Role::connector ? connector_hello_ : acceptor_hello_) = encode(builder);
}

Bytes Handshake::start() {
  return role_ == Role::connector ? connector_hello_ : Bytes{};
}

std::array<std::byte, 32> Handshake::mac(Role role) const {
  Bytes text;
  text.push_back(static_cast<std::byte>(role));
  for (const Bytes* hello : {&connector_hello_, &acceptor_hello_}) {
    const auto size = static_cast<std::uint64_t>(hello->size());
    const auto* raw = reinterpret_cast<const std::byte*>(&size);
    text.insert(text.end(), raw, raw + sizeof size);
    text.insert(text.end(), hello->begin(), hello->end());
  }
  std::array<std::byte, 32> out{};
  unsigned length = out.size();
  const auto* done = HMAC(EVP_sha256(), token_.data(), static_cast<int>(token_.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                          reinterpret_cast<unsigned char*>(out.data()), &length);
  TROUPE_CHECK(done != nullptr && length == out.size(), "HMAC-SHA256 is not to be had");
  return out;
}

Status Handshake::check_version() const {
  if (other_->protocol == self_.protocol) return {};
  return Error{
      Code::version_mismatch,
      fmt::format(
          "node \"{}\" ({}) speaks protocol version {}, but node \"{}\" ({}) speaks version "
          "{}: run the same release of Troupe on both",
          self_.name, self_.build, self_.protocol, other_->name, other_->build, other_->protocol)};
}

Status Handshake::on_hello(std::span<const std::byte> message, Bytes& reply) {
  bool has_token = false;
  TROUPE_TRY(decode(message, [&](schema::Handshake::Reader root) -> Status {
    other_ = read_greeting(root.getHello());
    has_token = root.getHello().getHasToken();
    return root.getHello().getNonce().size() == 32 || other_->protocol != self_.protocol
               ? Status{}
               : Status{Code::protocol_error, "the handshake's nonce is not 32 bytes long"};
  }));
  TROUPE_TRY(check_version());
  if (other_->node == self_.node)
    return Error{
        Code::invalid_argument,
        fmt::format("node \"{}\" connected to itself: give it another node's address", self_.name)};
  if (has_token == token_.empty())
    return Error{Code::permission_denied,
                 fmt::format("node \"{}\" has {} cluster token, but node \"{}\" has {}: start both "
                             "with the same token",
                             self_.name, token_.empty() ? "no" : "a", other_->name,
                             has_token ? "one" : "none")};
  (role_ == Role::connector ? acceptor_hello_ : connector_hello_)
      .assign(message.begin(), message.end());
  stage_ = Stage::proof;
  if (role_ == Role::acceptor) {
    reply = acceptor_hello_;
    return {};
  }
  capnp::MallocMessageBuilder builder;
  builder.initRoot<schema::Handshake>().setProof(as_data(mac(role_)));
  reply = encode(builder);
  return {};
}

Status Handshake::on_proof(std::span<const std::byte> proof, Bytes& reply) {
  const auto wanted = mac(role_ == Role::connector ? Role::acceptor : Role::connector);
  if (proof.size() != wanted.size() ||
      CRYPTO_memcmp(proof.data(), wanted.data(), wanted.size()) != 0)
    return Error{Code::permission_denied,
                 fmt::format("the cluster tokens of node \"{}\" and node \"{}\" differ: start both "
                             "with the same token",
                             self_.name, other_->name)};
  stage_ = Stage::access;
  if (role_ == Role::acceptor) {
    capnp::MallocMessageBuilder builder;
    builder.initRoot<schema::Handshake>().setProof(as_data(mac(role_)));
    reply = encode(builder);
  }
  return {};
}

Status Handshake::on_message(std::span<const std::byte> message, Bytes& reply) {
  return decode(message, [&](schema::Handshake::Reader root) -> Status {
    switch (root.which()) {
      case schema::Handshake::HELLO:
        return stage_ == Stage::hello ? on_hello(message, reply) : unexpected("hello");
      case schema::Handshake::PROOF:
        return stage_ == Stage::proof ? on_proof(as_bytes(root.getProof()), reply)
                                      : unexpected("proof");
      case schema::Handshake::ACCESS: {
        if (stage_ != Stage::access) return unexpected("access");
        const auto in = root.getAccess();
        const auto address = as_bytes(in.getAddress());
        if (address.empty()) return Status{Code::protocol_error, "the worker's address is empty"};
        access_ = Access{Bytes(address.begin(), address.end()), in.getSession(), in.getProbeAt(),
                         in.getProbeValue()};
        stage_ = Stage::done;
        return {};
      }
      case schema::Handshake::REFUSE: {
        const auto refusal = root.getRefuse();
        return Error{static_cast<Code>(refusal.getCode()), clean(refusal.getReason(), kMaxReason)};
      }
      default:
        return unexpected("message");
    }
  });
}

Bytes Handshake::offer(const Access& access) {
  capnp::MallocMessageBuilder builder;
  auto out = builder.initRoot<schema::Handshake>().initAccess();
  out.setAddress(as_data(access.address));
  out.setSession(access.session);
  out.setProbeAt(access.probe_at);
  out.setProbeValue(access.probe_value);
  return encode(builder);
}

Bytes encode_refusal(const Error& reason) {
  capnp::MallocMessageBuilder builder;
  auto refusal = builder.initRoot<schema::Handshake>().initRefuse();
  refusal.setCode(static_cast<std::uint16_t>(reason.code));
  refusal.setReason(reason.message.substr(0, kMaxReason));
  return encode(builder);
}

std::optional<Error> decode_refusal(std::span<const std::byte> message) {
  std::optional<Error> error;
  const Status read = decode(message, [&](schema::Handshake::Reader root) -> Status {
    if (root.isRefuse())
      error = Error{static_cast<Code>(root.getRefuse().getCode()),
                    clean(root.getRefuse().getReason(), kMaxReason)};
    return {};
  });
  return read.ok() ? error : std::nullopt;
}

}  // namespace troupe::transport
