#include "dispatch.hpp"

#include <string>

#include "error.hpp"

namespace ellipsum {

// clang-format off
#define ELLIPSUM_DECLARE(target)                                                              \
  namespace target {                                                                          \
  ClipCounts clip_sum(const Batch&, const Region&, const Arrangement&, double*,               \
                      std::int64_t*);                                                         \
  ClipCounts group_sums(const Batch&, const Region&, const GroupSums&, double*);              \
  void pack_matrix(const Region&, double*);                                                  \
  std::size_t run_mean(const Batch&, bool, double*, std::uint32_t*);                          \
  void row_ranks(const Batch&, const std::int64_t*, std::size_t, const std::uint64_t*,        \
                 std::uint64_t*);                                                             \
  void keystream(const std::uint32_t*, std::uint64_t, std::uint64_t, std::uint64_t*,          \
                 std::size_t);                                                                \
  std::size_t rounded_gaussian(const std::uint64_t*, std::size_t, const double*, std::size_t, \
                               std::int64_t*, std::uint32_t*);                                \
  std::size_t gaussian_stream(const std::uint32_t*, std::uint64_t, std::size_t, const double*, \
                              std::size_t, std::uint64_t*, std::int64_t*, std::uint32_t*);    \
  void form_nodes(const FormPath&, const SaddleTerms&, const double*, const double*,         \
                  FormValues&);                                                               \
  double form_power_sums(const double*, const double*, std::size_t, double*);                 \
  void form_moved(const FormValues*, std::size_t, double, FormMoved&);                        \
  void pair_slopes(const PairColumns&, double, double, PairSlopes&);                          \
  void pair_sums(const PairColumns&, double, double, double, double*, double*, PairSums&);    \
  }
#define ELLIPSUM_ROW(target, supported) \
  {#target,                             \
   supported,                           \
   target::clip_sum,                    \
   target::group_sums,                  \
   target::pack_matrix,                 \
   target::run_mean,                    \
   target::row_ranks,                   \
   target::keystream,                   \
   target::rounded_gaussian,            \
   target::gaussian_stream,             \
   target::form_nodes,                  \
   target::form_power_sums,             \
   target::form_moved,                  \
   target::pair_slopes,                 \
   target::pair_sums}
// clang-format on

ELLIPSUM_DECLARE(baseline)
#ifdef ELLIPSUM_HAS_avx2
ELLIPSUM_DECLARE(avx2)
#endif
#ifdef ELLIPSUM_HAS_avx512
ELLIPSUM_DECLARE(avx512)
#endif

namespace {

bool always() { return true; }
#ifdef ELLIPSUM_HAS_avx2
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}
#endif
#ifdef ELLIPSUM_HAS_avx512
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif

constexpr Kernels table[] = {
#ifdef ELLIPSUM_HAS_avx512
    ELLIPSUM_ROW(avx512, has_avx512),
#endif
#ifdef ELLIPSUM_HAS_avx2
    ELLIPSUM_ROW(avx2, has_avx2),
#endif
    ELLIPSUM_ROW(baseline, always),
};

// Names that exist somewhere, so that "not on this machine" differs from "no such thing".
constexpr std::string_view known_names[] = {"avx512", "avx2", "baseline"};

}  // namespace

KernelTable kernel_table() { return {table, sizeof(table) / sizeof(table[0])}; }

const Kernels& choose_kernels(std::string_view forced) {
  if (forced.empty()) {
    for (const Kernels& row : table)
      if (row.supported()) return row;
  }
  for (const Kernels& row : table) {
    if (forced != row.name) continue;
    if (row.supported()) return row;
    throw Exception(Error::unsupported_target,
                    "ELLIPSUM_CPU=" + std::string(forced) + " is not supported by this machine");
  }
  for (std::string_view name : known_names)
    if (forced == name)
      throw Exception(Error::unsupported_target,
                      "ELLIPSUM_CPU=" + std::string(forced) + " is not in this build");
  throw Exception(Error::unknown_target, "ELLIPSUM_CPU=" + std::string(forced) +
                                             " is unknown: use baseline, avx2 or avx512");
}

}  // namespace ellipsum
