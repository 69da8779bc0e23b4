#pragma once

namespace troupe::kernels {

// exp, log, sin and cos that give the same bits on every machine: only +, -, *, / in a fixed order
// (the sources that define them are compiled without contraction), where the C library picks an
// implementation by CPU. Accurate to a few units in the last place of double.

/// e^x for x <= 0 (0 below -745).
double portable_exp(double x) noexcept;
/// The natural logarithm of a positive, normal x.
double portable_log(double x) noexcept;
/// cos(2 pi turns) for turns in [0, 1).
double portable_cos_turns(double turns) noexcept;

}  // namespace troupe::kernels
