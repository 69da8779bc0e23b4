#pragma once

// TROUPE_WIDE_LOOP(name, (parameters), (arguments)) { body }
//
// Defines `name` as a loop that the compiler makes for any machine, for AVX2 and for AVX-512, and
// picks by what the CPU has. The body must give the same bits either way: elementwise (or as
// internal/wide_rows.hpp), and compiled without contraction.
#if defined(__x86_64__)
#define TROUPE_WIDE_LOOP(name, parameters, arguments)                                          \
  [[gnu::always_inline]] static inline void name##_body parameters;                            \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void name##_avx512 parameters { \
    name##_body arguments;                                                                     \
  }                                                                                            \
  [[gnu::target("avx2")]] static void name##_avx2 parameters {                                 \
    name##_body arguments;                                                                     \
  }                                                                                            \
  static void name##_any parameters {                                                          \
    name##_body arguments;                                                                     \
  }                                                                                            \
  static void name parameters {                                                                \
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&            \
        __builtin_cpu_supports("avx512bw"))                                                    \
      name##_avx512 arguments;                                                                 \
    else if (__builtin_cpu_supports("avx2"))                                                   \
      name##_avx2 arguments;                                                                   \
    else                                                                                       \
      name##_any arguments;                                                                    \
  }                                                                                            \
  [[gnu::always_inline]] static inline void name##_body parameters
#else
#define TROUPE_WIDE_LOOP(name, parameters, arguments) static void name parameters
#endif
