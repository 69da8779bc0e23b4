#include "runtime/transport/internal/ucx_worker.hpp"

#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <ucp/api/ucp.h>

namespace troupe::transport {
namespace {

/// How long a forced close may take before the worker is destroyed all the same.
constexpr std::chrono::milliseconds kCloseTime{100};

Error ucx_error(std::string_view what, ucs_status_t status) {
  return Error{Code::io_error, fmt::format("UCX cannot {}: {}", what, ucs_status_string(status))};
}

UcxWorker::Progress outcome(ucs_status_ptr_t request) {
  if (request == nullptr) return UcxWorker::Progress::done;
  return UCS_PTR_IS_ERR(request) ? UcxWorker::Progress::failed : UcxWorker::Progress::pending;
}

void on_sent(void* request, ucs_status_t status, void* op) {
  ucp_request_free(request);
  static_cast<UcxWorker::Operation*>(op)->completed(status == UCS_OK);
}

void on_received(void* request, ucs_status_t status, std::size_t, void* op) {
  on_sent(request, status, op);
}

void on_failed(void* receiver, ucp_ep_h, ucs_status_t status) {
  static_cast<UcxWorker::Receiver*>(receiver)->on_endpoint_failed(ucs_status_string(status));
}

}  // namespace

Result<std::unique_ptr<UcxWorker>> UcxWorker::make(const UcxContext& context, Receiver& receiver) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.am_alignment = 8;
  ucp_worker_h worker = nullptr;
  const ucs_status_t status = ucp_worker_create(context.get(), &params, &worker);
  if (status != UCS_OK) {
    Error error = ucx_error("make a worker", status);
    error.message +=
        "; it needs a few MiB of /dev/shm (or start without shared memory) and some twenty "
        "descriptors for each peer (ulimit -n)";
    return error;
  }
  std::unique_ptr<UcxWorker> made(new UcxWorker(worker, receiver));
  TROUPE_TRY(made->prepare());
  return made;
}

Status UcxWorker::prepare() {
  const ucs_status_t status = ucp_worker_get_efd(worker_, &event_fd_);
  if (status != UCS_OK) return ucx_error("wait for events", status);
  TROUPE_TRY(handle(kFrameAm));
  return handle(kPartAm);
}

Status UcxWorker::handle(unsigned id) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  handler.id = id;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.arg = this;
  if (id == kFrameAm)
    handler.cb = [](void* self, const void* header, std::size_t header_size, void* data,
                    std::size_t size, const ucp_am_recv_param_t* param) {
      return static_cast<ucs_status_t>(on_frame(self, header, header_size, data, size, param));
    };
  else
    handler.cb = [](void* self, const void* header, std::size_t header_size, void* data,
                    std::size_t size, const ucp_am_recv_param_t* param) {
      return static_cast<ucs_status_t>(on_part(self, header, header_size, data, size, param));
    };
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_, &handler);
  return status == UCS_OK ? Status{} : ucx_error("take active messages", status);
}

UcxWorker::~UcxWorker() {
  close_endpoint();
  ucp_worker_destroy(worker_);
}

void UcxWorker::close_endpoint() {
  if (endpoint_ == nullptr) return;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = ucp_ep_close_nbx(std::exchange(endpoint_, nullptr), &params);
  if (!UCS_PTR_IS_PTR(request)) return;
  const auto until = std::chrono::steady_clock::now() + kCloseTime;
  while (ucp_request_check_status(request) == UCS_INPROGRESS &&
         std::chrono::steady_clock::now() < until)
    ucp_worker_progress(worker_);
  ucp_request_free(request);
}

Result<std::vector<std::byte>> UcxWorker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t size = 0;
  const ucs_status_t status = ucp_worker_get_address(worker_, &address, &size);
  if (status != UCS_OK) return ucx_error("tell its address", status);
  std::vector<std::byte> copy(size);
  std::memcpy(copy.data(), address, size);
  ucp_worker_release_address(worker_, address);
  return copy;
}

Status UcxWorker::connect(std::span<const std::byte> address) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = on_failed;
  params.err_handler.arg = &receiver_;
  const ucs_status_t status = ucp_ep_create(worker_, &params, &endpoint_);
  if (status == UCS_OK) return {};
  endpoint_ = nullptr;
  return ucx_error("reach the peer with the transports that both have (see UCX_TLS)", status);
}

bool UcxWorker::progress() {
  return ucp_worker_progress(worker_) != 0;
}

bool UcxWorker::arm() {
  return ucp_worker_arm(worker_) == UCS_OK;
}

UcxWorker::Progress UcxWorker::send(unsigned id, const void* header, std::size_t header_size,
                                    std::span<const std::byte> bytes, unsigned flags,
                                    Operation& op) {
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = flags;
  params.cb.send = on_sent;
  params.user_data = &op;
  return outcome(
      ucp_am_send_nbx(endpoint_, id, header, header_size, bytes.data(), bytes.size(), &params));
}

UcxWorker::Progress UcxWorker::send_frame(const FrameHeader& header,
                                          std::span<const std::byte> frame, Operation& op) {
  return send(kFrameAm, &header, sizeof header, frame, UCP_AM_SEND_FLAG_EAGER, op);
}

UcxWorker::Progress UcxWorker::send_part(const PartHeader& header, std::span<const std::byte> bytes,
                                         Operation& op) {
  return send(kPartAm, &header, sizeof header, bytes, 0, op);
}

UcxWorker::Progress UcxWorker::receive(void* offer, std::span<std::byte> into, Operation& op) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.recv_am = on_received;
  params.user_data = &op;
  return outcome(ucp_am_recv_data_nbx(worker_, offer, into.data(), into.size(), &params));
}

int UcxWorker::on_frame(void* self, const void* header, std::size_t header_size, void* data,
                        std::size_t size, const ucp_am_recv_param* param) {
  Receiver& receiver = static_cast<UcxWorker*>(self)->receiver_;
  FrameHeader frame;
  if (header_size != sizeof frame || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    receiver.on_garbage();
    return UCS_OK;
  }
  std::memcpy(&frame, header, sizeof frame);
  receiver.on_frame(frame, {static_cast<const std::byte*>(data), size});
  return UCS_OK;
}

int UcxWorker::on_part(void* self, const void* header, std::size_t header_size, void* data,
                       std::size_t size, const ucp_am_recv_param* param) {
  Receiver& receiver = static_cast<UcxWorker*>(self)->receiver_;
  PartHeader part;
  if (header_size != sizeof part) {
    receiver.on_garbage();
    return UCS_OK;
  }
  std::memcpy(&part, header, sizeof part);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    return receiver.on_part_offered(part, size, data) ? UCS_INPROGRESS : UCS_OK;
  }
  receiver.on_part(part, {static_cast<const std::byte*>(data), size});
  return UCS_OK;
}

}  // namespace troupe::transport
