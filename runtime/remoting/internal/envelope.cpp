#include "runtime/remoting/internal/envelope.hpp"

#include <cstring>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/exception.h>
#include <schemas/envelope.capnp.h>

namespace troupe::remoting {
namespace {

static_assert(static_cast<int>(schema::Envelope::Kind::EXIT) == static_cast<int>(Kind::exit));

constexpr std::size_t kWord = sizeof(capnp::word);
/// A newer sender's head may have more fields.
constexpr std::size_t kMaxHeadWords = 64;

/// Words in the head's only segment, 0 if it has more than one or they are not all there.
std::size_t segment_words(std::span<const std::byte> bytes) {
  if (bytes.size() < kWord) return 0;
  std::uint32_t table[2];
  std::memcpy(table, bytes.data(), sizeof table);
  const std::size_t words = table[1];
  return table[0] == 0 && words <= kMaxHeadWords && (words + 1) * kWord <= bytes.size() ? words : 0;
}

}  // namespace

void encode(const Envelope& envelope, std::uint32_t body_bytes, Head& head) {
  alignas(kWord) capnp::word words[kHeadBytes / kWord - 1] = {};
  const std::uint32_t table[2] = {0, sizeof words / kWord};
  capnp::MallocMessageBuilder message(kj::arrayPtr(words, sizeof words / kWord));
  auto root = message.initRoot<schema::Envelope>();
  root.setKind(static_cast<schema::Envelope::Kind>(envelope.kind));
  root.setSource(envelope.source);
  root.setDestination(envelope.destination);
  root.setMessageId(envelope.message_id);
  root.setGeneration(envelope.generation);
  root.setBodyBytes(body_bytes);
  std::memcpy(head.data(), table, sizeof table);
  std::memcpy(head.data() + sizeof table, words, sizeof words);
}

Result<Opened> open(std::span<const std::byte> bytes) try {
  const auto words = segment_words(bytes);
  if (words == 0)
    return Error{Code::protocol_error, fmt::format("the head of an actor message of {} bytes is "
                                                   "not an envelope",
                                                   bytes.size())};
  const auto body = bytes.subspan((words + 1) * kWord);
  kj::ArrayPtr<const capnp::word> segments[] = {
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(bytes.data() + kWord), words)};
  capnp::SegmentArrayMessageReader message(kj::arrayPtr(segments, 1));
  const auto root = message.getRoot<schema::Envelope>();
  const auto kind = static_cast<std::uint16_t>(root.getKind());
  if (kind > static_cast<std::uint16_t>(Kind::exit))
    return Error{Code::protocol_error, fmt::format("an actor message is of kind {}, which this "
                                                   "version does not know",
                                                   kind)};
  if (root.getBodyBytes() != body.size())
    return Error{Code::protocol_error,
                 fmt::format("an actor message says that its body has {} bytes and has {}",
                             root.getBodyBytes(), body.size())};
  return Opened{Envelope{static_cast<Kind>(kind), root.getSource(), root.getDestination(),
                         root.getMessageId(), root.getGeneration()},
                body};
} catch (const kj::Exception&) {
  return Error{Code::protocol_error, "the head of an actor message is malformed"};
}

}  // namespace troupe::remoting
