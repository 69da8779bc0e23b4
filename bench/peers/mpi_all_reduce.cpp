// All-reduce by MPI.
//
// usage: mpirun -n RANKS mpi_all_reduce SIZES SAMPLES    (rank 0 prints)
#include <mpi.h>

#include "bench/peers/all_reduce_measure.hpp"

int main(int argc, char** argv) {
  using namespace troupe::bench;
  if (argc != 3) return 2;
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int samples = std::atoi(argv[2]);
  for (const std::size_t bytes : parse_sizes(argv[1])) {
    const std::size_t count = bytes / sizeof(float);
    std::vector<float> in(count), out(count);
    fill_input(in.data(), count, rank);
    const auto run = [&](int times) {
      for (int i = 0; i < times; ++i)
        MPI_Allreduce(in.data(), out.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      return static_cast<const float*>(out.data());
    };
    const auto barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
    const auto result = measure({bytes, in.data(), run, barrier}, ranks, samples, "default");
    if (rank == 0) print(stdout, result);
  }
  MPI_Finalize();
  return 0;
}
