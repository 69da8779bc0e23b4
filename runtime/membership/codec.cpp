#include "runtime/membership/codec.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/array.h>
#include <kj/exception.h>

#include "schemas/membership.capnp.h"

namespace troupe::membership {
namespace {

using Wire = schema::Membership;

/// Thrown inside this file only; decode() turns it into a Status.
struct Malformed {
  std::string what;
};

// Writing.

kj::StringPtr text(const std::string& s) {
  return {s.c_str(), s.size()};
}

void write(schema::NodeId::Builder out, NodeId id) {
  out.setHigh(id.high);
  out.setLow(id.low);
}

void write(schema::Address::Builder out, const transport::Address& address) {
  out.setHost(text(address.host));
  out.setPort(address.port);
}

void write(schema::Member::Builder out, const Member& member) {
  write(out.initNode(), member.node);
  out.setName(text(member.name));
  write(out.initAddress(), member.address);
  write(out.initLiveness(), member.liveness);
  out.setHost(text(member.host));
  out.setProcess(member.process);
  out.setSlots(member.slots);
  out.setJoined(member.joined);
  out.setDraining(member.draining);
}

void write(Wire::View::Builder out, const View& view) {
  out.setGeneration(view.generation);
  write(out.initHead(), view.head);
  auto members = out.initMembers(static_cast<unsigned>(view.members.size()));
  for (unsigned i = 0; i < members.size(); ++i) write(members[i], view.members[i]);
}

void write(Wire::Reason::Builder out, const Error& reason) {
  out.setCode(static_cast<std::uint16_t>(reason.code));
  out.setText(text(reason.message.substr(0, kMaxReasonBytes)));
}

/// Into what has the fields of a timing.
template <class Builder>
void write(Builder& out, const Timing& timing) {
  out.setPeriodNanos(static_cast<std::uint64_t>(timing.period.count()));
  out.setLimitNanos(static_cast<std::uint64_t>(timing.limit.count()));
  out.setHeadlessNanos(static_cast<std::uint64_t>(timing.headless.count()));
}

void write(Wire::Builder out, const Join& m) {
  auto join = out.initJoin();
  join.setProtocol(m.protocol);
  write(join.initMember(), m.member);
}

void write(Wire::Builder out, const Welcome& m) {
  auto welcome = out.initWelcome();
  write(welcome.initYou(), m.you);
  auto earlier = welcome.initEarlier(static_cast<unsigned>(m.earlier.size()));
  for (unsigned i = 0; i < earlier.size(); ++i) write(earlier[i], m.earlier[i]);
  write(welcome, m.timing);
  welcome.setTerm(m.term);
}

void write(Wire::Builder out, const Takeover& m) {
  auto takeover = out.initTakeover();
  takeover.setProtocol(m.protocol);
  takeover.setTerm(m.term);
  takeover.setGeneration(m.generation);
  write(takeover.initHead(), m.head);
  write(takeover, m.timing);
}

void write(Wire::Builder out, const Followed& m) {
  auto followed = out.initFollowed();
  followed.setTerm(m.term);
  if (m.view) write(followed.initView(), *m.view);
}

void write(Wire::Builder out, const Superseded& m) {
  out.setSuperseded(m.term);
}

void write(Wire::Departure::Builder out, const Departure& departure) {
  write(out.initNode(), departure.node);
  out.setName(text(departure.name));
  write(out.initReason(), departure.reason);
}

/// Into a list of as many.
template <class List, class T>
void write(List out, const std::vector<T>& values) {
  for (unsigned i = 0; i < out.size(); ++i) write(out[i], values[i]);
}

void write(Wire::Builder out, const ViewChanged& m) {
  auto changed = out.initView();
  write(changed.initView(), *m.view);
  write(changed.initDepartures(static_cast<unsigned>(m.departures.size())), m.departures);
}

void write(Wire::Builder out, const Amended& m) {
  const Amendment& amendment = *m.amendment;
  auto amended = out.initAmended();
  amended.setGeneration(amendment.generation);
  write(amended.initChanged(static_cast<unsigned>(amendment.changed.size())), amendment.changed);
  write(amended.initDepartures(static_cast<unsigned>(amendment.departures.size())),
        amendment.departures);
  amended.setMembers(amendment.members);
}

void write(Wire::Builder out, const Heartbeat& m) {
  auto heartbeat = out.initHeartbeat();
  heartbeat.setGeneration(m.generation);
  heartbeat.setSequence(m.sequence);
  heartbeat.setDeaf(m.deaf);
}

void write(Wire::Builder out, const Suspect& m) {
  auto suspect = out.initSuspect();
  write(suspect.initNode(), m.node);
  write(suspect.initReason(), m.reason);
}

void write(Wire::Builder out, const Mesh&) {
  out.setMesh();
}
void write(Wire::Builder out, const Forget& m) {
  write(out.initForget(), m.node);
}
void write(Wire::Builder out, const Drain& m) {
  write(out.initDrain(), m.node);
}
void write(Wire::Builder out, const Joined& m) {
  write(out.initJoined(), *m.view);
}
void write(Wire::Builder out, const Refused& m) {
  write(out.initRefused(), m.reason);
}
void write(Wire::Builder out, const Leave&) {
  out.setLeave();
}
void write(Wire::Builder out, const Released&) {
  out.setReleased();
}
void write(Wire::Builder out, const Fenced& m) {
  write(out.initFenced(), m.reason);
}
void write(Wire::Builder out, const Ended& m) {
  write(out.initEnded(), m.reason);
}

// Reading.

std::string read_text(capnp::Text::Reader in, std::size_t most, const char* what) {
  if (in.size() > most)
    throw Malformed{fmt::format("{} of {} bytes, more than {}", what, in.size(), most)};
  return {in.begin(), in.size()};
}

NodeId read(schema::NodeId::Reader in) {
  return {in.getHigh(), in.getLow()};
}

transport::Address read(schema::Address::Reader in) {
  return {read_text(in.getHost(), kMaxHostBytes, "an address"), in.getPort()};
}

Member read(schema::Member::Reader in) {
  Member member;
  member.node = read(in.getNode());
  if (!member.node.valid()) throw Malformed{"a member without an id"};
  member.name = read_text(in.getName(), kMaxNameBytes, "a name");
  member.address = read(in.getAddress());
  member.liveness = read(in.getLiveness());
  member.host = read_text(in.getHost(), kMaxHostBytes, "a host");
  member.process = in.getProcess();
  member.slots = in.getSlots();
  member.joined = in.getJoined();
  member.draining = in.getDraining();
  return member;
}

std::vector<Member> read(capnp::List<schema::Member>::Reader in) {
  if (in.size() > kMaxMembers)
    throw Malformed{fmt::format("{} members, more than {}", in.size(), kMaxMembers)};
  std::vector<Member> members;
  members.reserve(in.size());
  for (const auto member : in) members.push_back(read(member));
  return members;
}

SharedView read(Wire::View::Reader in) {
  auto view = std::make_shared<View>();
  view->generation = in.getGeneration();
  view->head = read(in.getHead());
  view->members = read(in.getMembers());
  return view;
}

Error read(Wire::Reason::Reader in) {
  return {static_cast<Code>(in.getCode()), read_text(in.getText(), kMaxReasonBytes, "a reason")};
}

Join read(Wire::Join::Reader in) {
  return {in.getProtocol(), read(in.getMember())};
}

/// Out of what has the fields of a timing.
template <class Reader>
Timing read_timing(Reader in) {
  const auto nanos = [](std::uint64_t n) {
    constexpr std::uint64_t kMost = 604'800'000'000'001;  // past what validate() lets through
    return Duration(static_cast<Duration::rep>(n < kMost ? n : kMost));
  };
  const Timing timing{nanos(in.getPeriodNanos()), nanos(in.getLimitNanos()),
                      nanos(in.getHeadlessNanos())};
  if (const auto status = timing.validate(); !status.ok()) throw Malformed{status.error().message};
  return timing;
}

Welcome read(Wire::Welcome::Reader in) {
  Welcome welcome;
  welcome.you = read(in.getYou());
  welcome.earlier = read(in.getEarlier());
  welcome.timing = read_timing(in);
  welcome.term = in.getTerm();
  return welcome;
}

Takeover read(Wire::Takeover::Reader in) {
  return {in.getProtocol(), in.getTerm(), in.getGeneration(), read(in.getHead()), read_timing(in)};
}

Followed read(Wire::Followed::Reader in) {
  return {in.getTerm(), in.hasView() ? read(in.getView()) : nullptr};
}

std::vector<Departure> read(capnp::List<Wire::Departure>::Reader in) {
  if (in.size() > kMaxMembers)
    throw Malformed{fmt::format("{} departures, more than {}", in.size(), kMaxMembers)};
  std::vector<Departure> departures;
  departures.reserve(in.size());
  for (const auto departure : in)
    departures.push_back({read(departure.getNode()),
                          read_text(departure.getName(), kMaxNameBytes, "a name"),
                          read(departure.getReason())});
  return departures;
}

ViewChanged read(Wire::ViewChanged::Reader in) {
  return {read(in.getView()), read(in.getDepartures())};
}

Amended read(Wire::Amendment::Reader in) {
  return {std::make_shared<const Amendment>(Amendment{in.getGeneration(), read(in.getChanged()),
                                                      read(in.getDepartures()), in.getMembers()})};
}

Heartbeat read(Wire::Heartbeat::Reader in) {
  return {in.getGeneration(), in.getSequence(), in.getDeaf()};
}
Suspect read(Wire::Suspicion::Reader in) {
  return {read(in.getNode()), read(in.getReason())};
}

Message read(Wire::Reader in) {
  switch (in.which()) {
    case Wire::JOIN:
      return read(in.getJoin());
    case Wire::WELCOME:
      return read(in.getWelcome());
    case Wire::MESH:
      return Mesh{};
    case Wire::JOINED:
      return Joined{read(in.getJoined())};
    case Wire::REFUSED:
      return Refused{read(in.getRefused())};
    case Wire::VIEW:
      return read(in.getView());
    case Wire::LEAVE:
      return Leave{};
    case Wire::RELEASED:
      return Released{};
    case Wire::HEARTBEAT:
      return read(in.getHeartbeat());
    case Wire::SUSPECT:
      return read(in.getSuspect());
    case Wire::FENCED:
      return Fenced{read(in.getFenced())};
    case Wire::ENDED:
      return Ended{read(in.getEnded())};
    case Wire::FORGET:
      return Forget{read(in.getForget())};
    case Wire::DRAIN:
      return Drain{read(in.getDrain())};
    case Wire::TAKEOVER:
      return read(in.getTakeover());
    case Wire::FOLLOWED:
      return read(in.getFollowed());
    case Wire::SUPERSEDED:
      return Superseded{in.getSuperseded()};
    case Wire::AMENDED:
      return read(in.getAmended());
  }
  throw Malformed{fmt::format("kind {} which is not known", static_cast<unsigned>(in.which()))};
}

}  // namespace

std::vector<std::byte> encode(const Message& message) {
  capnp::MallocMessageBuilder builder;
  const auto root = builder.initRoot<Wire>();
  std::visit([&root](const auto& m) { write(root, m); }, message);
  const auto words = capnp::messageToFlatArray(builder);
  const auto bytes = words.asBytes();
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.begin());
  return {begin, begin + bytes.size()};
}

Result<Message> decode(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxMessageBytes || bytes.size() % sizeof(capnp::word) != 0)
    return Error{
        Code::protocol_error,
        fmt::format("a membership message of {} bytes, which is no size of one", bytes.size())};
  // Cap'n Proto reads in place from whole words.
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  if (!bytes.empty()) std::memcpy(words.begin(), bytes.data(), bytes.size());
  capnp::ReaderOptions options;
  options.traversalLimitInWords =
      words.size() + 64;  // a list that is read twice is no list of ours
  options.nestingLimit = 8;
  try {
    capnp::FlatArrayMessageReader reader(words, options);
    return read(reader.getRoot<Wire>());
  } catch (const Malformed& malformed) {
    return Error{Code::protocol_error, "a membership message with " + malformed.what};
  } catch (const kj::Exception& exception) {
    return Error{Code::protocol_error, std::string("bytes that are no membership message: ") +
                                           exception.getDescription().cStr()};
  }
}

}  // namespace troupe::membership
