// Both tails at one q. The smaller one is computed and the other is its complement: a large
// tail by its own integral would cancel, and could cancel into a wrong small number.
#pragma once
#include <cmath>

#include "constants.hpp"

namespace ellipsum {

struct FormTail {
  double log_small, log_pdf;
  double error, pdf_error;  // estimates, relative
  bool upper;               // the smaller tail is P(Q > q)
  int nodes;
};

// The other tail at the same q.
inline FormTail complement(FormTail t) {
  const double large = std::exp(t.log_small);
  t.error *= large / (1 - large);
  t.log_small = std::log1p(-large);
  t.upper = !t.upper;
  return t;
}

// The smaller tail, where `t` is one of them and `other_side()` computes the other.
template <class OtherSide> FormTail smaller_tail(const FormTail& t, const OtherSide& other_side) {
  constexpr double largest_complemented = 0.9;  // up to here 1 - p costs one digit at most
  if (t.log_small < -ln2) return t;
  if (t.log_small < std::log(largest_complemented)) return complement(t);
  FormTail small = other_side();
  small.nodes += t.nodes;
  return small;
}

}  // namespace ellipsum
