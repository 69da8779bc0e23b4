// All-reduce by Gloo over TCP on the loopback, the fastest of its algorithms for each size.
//
// usage: gloo_all_reduce RANK RANKS DIRECTORY SIZES SAMPLES    (rank 0 prints)
#include <exception>
#include <memory>

#include <gloo/algorithm.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "bench/peers/all_reduce_measure.hpp"

namespace {

using namespace troupe::bench;
using Context = std::shared_ptr<gloo::rendezvous::Context>;

AllReduceResult measure_one(const Context& context, std::size_t bytes, int samples,
                            gloo::AllreduceOptions::Algorithm algorithm, const char* name) {
  const std::size_t count = bytes / sizeof(float);
  std::vector<float> in(count), out(count);
  fill_input(in.data(), count, context->rank);
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(algorithm);
  options.setInput(in.data(), count);
  options.setOutput(out.data(), count);
  options.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i) gloo::allreduce(options);
    return static_cast<const float*>(out.data());
  };
  gloo::BarrierOptions barrier(context);
  return measure({bytes, in.data(), run, [&] { gloo::barrier(barrier); }}, context->size, samples,
                 name);
}

int run(int argc, char** argv) {
  if (argc != 6) return 2;
  const int rank = std::atoi(argv[1]);
  const int ranks = std::atoi(argv[2]);
  gloo::transport::tcp::attr attr;
  attr.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attr);
  gloo::rendezvous::FileStore store(argv[3]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  const int samples = std::atoi(argv[5]);
  for (const std::size_t bytes : parse_sizes(argv[4])) {
    using Options = gloo::detail::AllreduceOptionsImpl;
    for (const auto& result : {measure_one(context, bytes, samples, Options::RING, "ring"),
                               measure_one(context, bytes, samples, Options::BCUBE, "bcube")})
      if (rank == 0) print(stdout, result);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gloo_all_reduce: %s\n", e.what());
    return 1;
  }
}
