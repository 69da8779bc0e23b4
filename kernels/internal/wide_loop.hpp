#pragma once

// TROUPE_WIDE_LOOP(name, (parameters), (arguments)) { body }
//
// Defines `name` as a loop that the compiler makes twice, for any machine and for AVX2, and picks
// by what the CPU has. The body must give the same bits either way: elementwise, and compiled
// without contraction.
#if defined(__x86_64__)
#define TROUPE_WIDE_LOOP(name, parameters, arguments)               \
  [[gnu::always_inline]] static inline void name##_body parameters; \
  [[gnu::target("avx2")]] static void name##_avx2 parameters {      \
    name##_body arguments;                                          \
  }                                                                 \
  static void name##_any parameters {                               \
    name##_body arguments;                                          \
  }                                                                 \
  static void name parameters {                                     \
    if (__builtin_cpu_supports("avx2"))                             \
      name##_avx2 arguments;                                        \
    else                                                            \
      name##_any arguments;                                         \
  }                                                                 \
  [[gnu::always_inline]] static inline void name##_body parameters
#else
#define TROUPE_WIDE_LOOP(name, parameters, arguments) static void name parameters
#endif
