// The table of targets: one row an instruction set, one column a kernel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "batch.hpp"
#include "form_nodes.hpp"

namespace ellipsum {

struct Kernels {
  const char* name;
  bool (*supported)();  // does this machine run it?
  ClipCounts (*clip_sum)(const Batch&, const Region&, std::int64_t* partial);
  // The integrand of a quadratic form at form_block nodes.
  void (*form_nodes)(const FormPath&, const FormRelative&, const double* sinh_u,
                     const double* cosh_u, FormValues&);
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
