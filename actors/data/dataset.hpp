#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/dtype.hpp"
#include "kernels/shape.hpp"
#include "runtime/base/status.hpp"
#include "runtime/memory/buffer.hpp"

namespace troupe::train {

/// What the tensors of one sample are.
struct SampleLayout {
  kernels::DType dtype = kernels::DType::u8;  ///< of the input: u8 pixels or i32 tokens
  kernels::Shape input;                       ///< [channels, height, width] or [tokens]
  kernels::Shape labels;                      ///< of i32: [], or [tokens]

  std::size_t input_bytes() const {
    return static_cast<std::size_t>(input.elements()) * kernels::size_of(dtype);
  }
  std::size_t label_bytes() const {
    return static_cast<std::size_t>(labels.elements()) * sizeof(std::int32_t);
  }
  bool operator==(const SampleLayout&) const = default;
};

/// What samples are read for. Those of training may be augmented, in each epoch otherwise.
struct Use {
  bool training = false;
  std::uint64_t epoch = 0;  ///< from 0; of training only
};
inline constexpr Use kForTest{};

/// Labelled samples of one layout, by index.
///
/// What read() writes is a pure function of the content, the index and the use (and of the seed, if
/// the set augments): it is the same on whatever node, on whatever thread and after whatever else
/// was read.
///
/// Ownership: open files and what it keeps in memory; callers bring the memory of samples.
/// Threads:   any, all of it.
/// Failure:   read() gives `corrupt_data` for a sample that is damaged, which would be so on every
///            node that has the same content; `io_error`, `not_found` and `resource_exhausted` are
///            the node's own. The sentence names file and offset, or entry. Another sample can be
///            read after any.
/// Invariant: there is at least one sample; labels that were read are below the number of classes.
class Dataset {
public:
  virtual ~Dataset() = default;

  virtual std::uint64_t count() const = 0;
  virtual const SampleLayout& layout() const = 0;
  /// 32 hex digits: nodes compare it before they start. docs/data.md says what of the content is
  /// in it.
  virtual const std::string& content_hash() const = 0;
  /// Writes the sample `index`, which must be below count(). `input` and `labels` must have the
  /// layout's bytes; after an error they hold anything.
  virtual Status read(std::uint64_t index, Use use, std::span<std::byte> input,
                      std::span<std::byte> labels) const = 0;
};

/// Reads the samples `indices` to the start of `inputs` ([n] + the layout's input) and `labels`
/// ([n] + the layout's labels).
/// Errors: `invalid_argument` if an index is not below count() or a buffer is too small; those of
/// Dataset::read.
Status gather(const Dataset& data, std::span<const std::uint32_t> indices, Use use, Buffer& inputs,
              Buffer& labels);
/// The same for the `count` samples from `first`.
Status gather_run(const Dataset& data, std::uint64_t first, std::uint64_t count, Use use,
                  Buffer& inputs, Buffer& labels);

}  // namespace troupe::train
