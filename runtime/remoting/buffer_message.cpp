#include "runtime/remoting/buffer_message.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <caf/deserializer.hpp>
#include <caf/sec.hpp>
#include <caf/serializer.hpp>

#include "runtime/remoting/internal/wire.hpp"

namespace troupe {
namespace {

// What stands in the message for a buffer: its size, and whether its bytes follow or are a segment.
enum class Place : std::uint8_t { in_line = 0, segment = 1 };

/// A size from anywhere is believed only as far as bytes came for it.
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

caf::error read_in_line(caf::deserializer& source, std::size_t size, Buffer& buffer) {
  auto memory = Buffer::allocate(std::min(size, kChunkBytes));
  if (!memory.ok()) return caf::sec::runtime_error;
  std::size_t have = 0;
  while (true) {
    if (auto error = source.apply_raw(memory->size() - have, memory->data() + have)) return error;
    have = memory->size();
    if (have == size) break;
    auto larger = Buffer::allocate(have > size / 2 ? size : have * 2);
    if (!larger.ok()) return caf::sec::runtime_error;
    std::memcpy(larger->data(), memory->data(), have);
    memory = std::move(larger);
  }
  buffer = std::move(*memory);
  return {};
}

}  // namespace

caf::error inspect(caf::serializer& sink, Buffer& buffer) {
  const bool of_device = on_device(buffer.kind());
  auto* wire = dynamic_cast<remoting::WireWriter*>(&sink);
  std::uint64_t size = buffer.size();
  auto place = wire != nullptr && (size >= kOutOfBandBytes || (of_device && size != 0))
                   ? Place::segment
                   : Place::in_line;
  if (auto error = sink(size, place)) return error;
  if (place == Place::segment) {
    wire->add_segment(buffer);
    return {};
  }
  // Device memory cannot be read here.
  if (of_device && size != 0) return caf::sec::invalid_argument;
  return size != 0 ? sink.apply_raw(buffer.size(), buffer.data()) : caf::error{};
}

caf::error inspect(caf::deserializer& source, Buffer& buffer) {
  std::uint64_t size = 0;
  auto place = Place::in_line;
  if (auto error = source(size, place)) return error;
  auto* wire = dynamic_cast<remoting::WireReader*>(&source);
  if (place == Place::segment)
    return wire != nullptr ? wire->take_segment(size, buffer) : caf::sec::end_of_stream;
  if (place != Place::in_line || (wire != nullptr && size > wire->remaining()))
    return caf::sec::end_of_stream;
  if (size == 0) {
    buffer = Buffer{};
    return {};
  }
  return read_in_line(source, static_cast<std::size_t>(size), buffer);
}

std::string to_string(const Buffer& buffer) {
  return "buffer of " + std::to_string(buffer.size()) + " bytes";
}

}  // namespace troupe
