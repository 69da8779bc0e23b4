#include "kernels/cpu/internal/parallel.hpp"

#include <atomic>

// Of GCC's OpenMP runtime, which oneDNN is linked with: what a compiler makes of
// `#pragma omp parallel num_threads(n)`. Called by hand so that every compiler uses that one.
extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
}

namespace troupe::kernels::cpu {
namespace {

struct Team {
  int parts;
  void (*body)(int, void*);
  void* data;
  // Sanitizers do not see the runtime's own synchronisation.
  std::atomic<bool> begun{false};
  std::atomic<int> done{0};
};

void run_member(void* pointer) {
  Team& team = *static_cast<Team*>(pointer);
  (void)team.begun.load(std::memory_order_acquire);
  // The runtime may give fewer threads than were asked for.
  for (int part = omp_get_thread_num(); part < team.parts; part += omp_get_num_threads())
    team.body(part, team.data);
  team.done.fetch_add(1, std::memory_order_release);
}

}  // namespace

void run_parts(int parts, void (*body)(int, void*), void* data) {
  Team team{parts, body, data};
  team.begun.store(true, std::memory_order_release);
  GOMP_parallel(run_member, &team, static_cast<unsigned>(parts), 0);
  (void)team.done.load(std::memory_order_acquire);
}

}  // namespace troupe::kernels::cpu
