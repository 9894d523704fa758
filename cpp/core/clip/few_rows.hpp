// A few rows at a time into totals of 128 bits: what a call would set up is set up once.
#pragma once
#include <cstdint>
#include <vector>

#include "batch.hpp"
#include "clip/arrangement.hpp"

namespace ellipsum {

// One call at a time. It has the numbers of its region; a region with a matrix is none for it.
class FewRows {
 public:
  explicit FewRows(const Region& region);
  FewRows(const FewRows&) = delete;
  FewRows& operator=(const FewRows&) = delete;

  std::size_t d() const { return region_.d; }
  static constexpr std::size_t counts = 3;
  // Adds the rows to d totals, two's complement, and their number and counts to three more; the totals
  // change last, when nothing can fail.
  void add(const Choice& choice, const Batch& batch, std::uint64_t* low, std::int64_t* high);

 private:
  std::vector<double> center_, scale_, limit_, scratch_;
  std::vector<std::int64_t> partial_;
  Region region_;
};

}  // namespace ellipsum
