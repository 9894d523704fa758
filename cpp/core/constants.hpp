// Numbers of mathematics, each once, to the nearest double.
#pragma once
#include <limits>

namespace ellipsum {

constexpr double pi = 3.14159265358979323846;
constexpr double half_pi = 1.57079632679489661923;
constexpr double sqrt_pi = 1.77245385090551602730;
constexpr double ln2 = 0.69314718055994530942;
constexpr double sqrt_half = 0.70710678118654752440;
constexpr double sqrt_2pi = 2.50662827463100050242;
constexpr double log_sqrt_2pi = 0.91893853320467274178;
constexpr double log_2pi = 1.8378770664093454836;
constexpr double exp_minus_euler = 0.56145948356688516982;  // e^-gamma
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace ellipsum
