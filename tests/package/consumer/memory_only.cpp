// A program that wants the bottom alone links no more than it.
#include <cstdio>

#include <troupe/runtime/memory/buffer_pool.hpp>

int main() {
  troupe::BufferPool pool;
  auto buffer = pool.acquire(10000);
  if (!buffer.ok()) {
    std::fprintf(stderr, "%s\n", troupe::to_string(buffer.error()).c_str());
    return 1;
  }
  std::printf("memory_only: %zu bytes\n", buffer->size());
}
