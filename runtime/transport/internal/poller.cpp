#include "runtime/transport/internal/poller.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace troupe::transport {
namespace {

epoll_event interest(std::uint64_t token, bool write) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (write ? EPOLLOUT : 0u);
  event.data.u64 = token;
  return event;
}

}  // namespace

Status Poller::open() {
  epoll_ = Socket(::epoll_create1(EPOLL_CLOEXEC));
  event_ = Socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !event_.valid())
    return Error{Code::io_error,
                 fmt::format("cannot make an event descriptor: {}", std::strerror(errno))};
  return add(event_.fd(), kWake);
}

Status Poller::add(int fd, std::uint64_t token, bool write) {
  epoll_event event = interest(token, write);
  if (::epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event) != 0)
    return Error{Code::io_error,
                 fmt::format("cannot watch a descriptor: {}", std::strerror(errno))};
  return {};
}

void Poller::change(int fd, std::uint64_t token, bool write) {
  epoll_event event = interest(token, write);
  ::epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd) {
  ::epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr);
}

int Poller::wait_for(Duration timeout) {
  const int size = static_cast<int>(std::size(events_));
  if (timeout > Duration::zero() && fine_waits_) {
    timespec fine{};
    fine.tv_sec = static_cast<time_t>(timeout.count() / 1'000'000'000);
    fine.tv_nsec = static_cast<long>(timeout.count() % 1'000'000'000);
    const int n = ::epoll_pwait2(epoll_.fd(), events_, size, &fine, nullptr);
    if (n >= 0 || errno == EINTR) return n;
    fine_waits_ = false;  // an old kernel, or a sandbox that does not know the call
  }
  // Rounded up: waking a little late is right, waking early over and over is not.
  const auto ms = timeout < Duration::zero()
                      ? -1
                      : std::min<std::int64_t>(
                            std::chrono::ceil<std::chrono::milliseconds>(timeout).count(), 60'000);
  return ::epoll_wait(epoll_.fd(), events_, size, static_cast<int>(ms));
}

std::span<const epoll_event> Poller::wait(Duration timeout) {
  int n = wait_for(timeout);
  if (n < 0) n = 0;
  int kept = 0;
  for (int i = 0; i < n; ++i) {
    if (events_[i].data.u64 == kWake) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(event_.fd(), &count, sizeof count);
    } else {
      events_[kept++] = events_[i];
    }
  }
  return {events_, static_cast<std::size_t>(kept)};
}

void Poller::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(event_.fd(), &one, sizeof one);
}

}  // namespace troupe::transport
