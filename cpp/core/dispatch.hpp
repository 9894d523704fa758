// The table of targets: one row an instruction set, one column a kernel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "batch.hpp"
#include "clip/arrangement.hpp"
#include "quadratic_form/nodes.hpp"
#include "quadratic_form/pair_terms.hpp"

namespace ellipsum {

struct Kernels {
  const char* name;
  bool (*supported)();  // does this machine run it?
  ClipCounts (*clip_sum)(const Batch&, const Region&, const Arrangement&, double* scratch,
                         std::int64_t* partial);
  ClipCounts (*group_sums)(const Batch&, const Region&, const GroupSums&, double* scratch);
  void (*pack_matrix)(const Region&, double* packed);  // its matrix, or its factors
  // The mean, or sum, of a run of fewer than 2^24 contiguous rows, rounded once, as run_means; returns
  // of how many coordinates it is not known, and their indices.
  std::size_t (*run_mean)(const Batch& rows, bool divide, double* out, std::uint32_t* unsure);
  // ranks[k] <- a hash of its seed, and of row which[k] with the words of its columns, as row_ranks.
  void (*row_ranks)(const Batch& rows, const std::int64_t* which, std::size_t n,
                    const std::uint64_t* places, std::uint64_t* ranks);
  // ChaCha20 blocks block, block + 1, ...; key of 8 words, out of 8 * blocks words.
  void (*keystream)(const std::uint32_t* key, std::uint64_t nonce, std::uint64_t block,
                    std::uint64_t* out, std::size_t blocks);
  // out[i] = nearest integer to sigma[i * sigma_step] * z(words[i]); sigma_step is 0 or 1.
  // Returns how many of them are ambiguous, and their indices.
  std::size_t (*rounded_gaussian)(const std::uint64_t* words, std::size_t n, const double* sigma,
                                  std::size_t sigma_step, std::int64_t* out,
                                  std::uint32_t* ambiguous);
  // Both at once, from block `block` of nonce 0; `words` takes n words, rounded up to a block.
  std::size_t (*gaussian_stream)(const std::uint32_t* key, std::uint64_t block, std::size_t n,
                                 const double* sigma, std::size_t sigma_step, std::uint64_t* words,
                                 std::int64_t* out, std::uint32_t* ambiguous);
  // The integrand of a quadratic form at form_block nodes.
  void (*form_nodes)(const FormPath&, const SaddleTerms&, const double* sinh_u,
                     const double* cosh_u, FormValues&);
  // out[p] += sum mass e^(p + 1), form_moments of them; returns sum mass.
  double (*form_power_sums)(const double* e, const double* mass, std::size_t n, double* out);
  // Such blocks for another q, at the distance delta.
  void (*form_moved)(const FormValues* blocks, std::size_t n, double delta, FormMoved&);
  // The terms of two Gaussians at t, where 1 - t highest is the gap: for the search of the
  // saddlepoint; and all that is needed there, r and kappa (columns.n of them) in units of t/unit.
  void (*pair_slopes)(const PairColumns&, double t, double gap, PairSlopes&);
  void (*pair_sums)(const PairColumns&, double t, double gap, double unit, double* r, double* kappa,
                    PairSums&);
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
