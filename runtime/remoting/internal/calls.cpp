#include "runtime/remoting/internal/calls.hpp"

#include <utility>

namespace troupe::remoting {

std::uint64_t Calls::begin(const Route* route, Done done) {
  MutexLock lock(mutex_);
  calls_.emplace(next_, Call{route, std::move(done)});
  return next_++;
}

bool Calls::finish(std::uint64_t number, const Route* route, Result<caf::actor> result) {
  Done done;
  {
    MutexLock lock(mutex_);
    const auto found = calls_.find(number);
    if (found == calls_.end() || (route != nullptr && found->second.route != route)) return false;
    done = std::move(found->second.done);
    calls_.erase(found);
  }
  done(std::move(result));
  return true;
}

void Calls::fail(const Route* route, const Error& error) {
  std::vector<Done> failed;
  {
    MutexLock lock(mutex_);
    std::erase_if(calls_, [&](auto& entry) {
      if (route != nullptr && entry.second.route != route) return false;
      failed.push_back(std::move(entry.second.done));
      return true;
    });
  }
  for (auto& done : failed) done(error);
}

}  // namespace troupe::remoting
