#include <memory>

#include "kernels/internal/backend.hpp"

namespace troupe::kernels {

namespace {

Error cannot_record() {
  return {Code::not_supported, "streams of this device record nothing"};
}

}  // namespace

Status Stream::begin_recording() {
  return cannot_record();
}
Result<std::unique_ptr<Recording>> Stream::end_recording() {
  return cannot_record();
}
Status Stream::enqueue(Recording&) {
  return cannot_record();
}

}  // namespace troupe::kernels
