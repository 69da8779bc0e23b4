#include "actors/data/dataset.hpp"

#include <fmt/format.h>

namespace troupe::train {
namespace {

Status check_room(const SampleLayout& layout, std::uint64_t samples, const Buffer& inputs,
                  const Buffer& labels) {
  const std::uint64_t input_room = inputs.size() / layout.input_bytes();
  const std::uint64_t label_room = labels.size() / layout.label_bytes();
  if (samples <= input_room && samples <= label_room) return {};
  return {Code::invalid_argument,
          fmt::format("{} samples do not fit buffers with room for {} inputs and {} labels",
                      samples, input_room, label_room)};
}

Status read_to(const Dataset& data, std::uint64_t from, std::uint64_t to, Use use, Buffer& inputs,
               Buffer& labels) {
  const std::size_t input_bytes = data.layout().input_bytes();
  const std::size_t label_bytes = data.layout().label_bytes();
  return data.read(from, use, inputs.bytes().subspan(to * input_bytes, input_bytes),
                   labels.bytes().subspan(to * label_bytes, label_bytes));
}

}  // namespace

Status gather(const Dataset& data, std::span<const std::uint32_t> indices, Use use, Buffer& inputs,
              Buffer& labels) {
  TROUPE_TRY(check_room(data.layout(), indices.size(), inputs, labels));
  for (const std::uint32_t index : indices)
    if (index >= data.count())
      return {Code::invalid_argument,
              fmt::format("there is no sample {} among {}", index, data.count())};
  for (std::size_t i = 0; i < indices.size(); ++i)
    TROUPE_TRY(read_to(data, indices[i], i, use, inputs, labels));
  return {};
}

Status gather_run(const Dataset& data, std::uint64_t first, std::uint64_t count, Use use,
                  Buffer& inputs, Buffer& labels) {
  TROUPE_TRY(check_room(data.layout(), count, inputs, labels));
  if (first > data.count() || count > data.count() - first)
    return {Code::invalid_argument, fmt::format("there are no samples {} to {} among {}", first,
                                                first + count, data.count())};
  for (std::uint64_t i = 0; i < count; ++i)
    TROUPE_TRY(read_to(data, first + i, i, use, inputs, labels));
  return {};
}

}  // namespace troupe::train
