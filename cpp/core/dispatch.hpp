// The table of targets: one row an instruction set, one column a kernel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "batch.hpp"

namespace ellipsum {

struct Kernels {
  const char* name;
  bool (*supported)();  // does this machine run it?
  ClipCounts (*clip_sum)(const Batch&, const Region&, double* scratch, std::int64_t* partial);
  void (*pack_matrix)(std::size_t d, const double* matrix, double* packed);
};

// In order of preference, best first; `baseline` is last and always supported.
struct KernelTable {
  const Kernels* first;
  std::size_t count;
};
KernelTable kernel_table();

// The best supported target, or the forced one. An unknown name, or one that this machine
// or this build lacks, throws.
const Kernels& choose_kernels(std::string_view forced);

}  // namespace ellipsum
