// No branch and no address of the noise's fast path depends on a key, a word or a sample: they
// are declared undefined to Valgrind's memcheck, which then counts each branch and address that
// is made of them. Allowed is one branch for each mask of ambiguous samples, a group of four or
// more, which no sample of these keys takes. (Jin et al. 2022: docs/attacks.md. Valgrind runs no
// AVX-512: that target is left to its likeness with the others.)
#include <valgrind/memcheck.h>

#include <cstdio>
#include <vector>

#include "dispatch.hpp"

using namespace ellipsum;

namespace {

constexpr std::size_t samples = 2048;
constexpr std::size_t least_group = 4;  // samples at once, of any target

struct Found {
  unsigned branches, allowed;
  std::size_t ambiguous;
};

Found key_stream(const Kernels& kernels) {
  std::vector<std::uint32_t> key(8, 0x9e3779b9);
  std::vector<std::uint64_t> words(samples);
  (void)VALGRIND_MAKE_MEM_UNDEFINED(key.data(), key.size() * sizeof key[0]);
  const unsigned before = VALGRIND_COUNT_ERRORS;
  kernels.keystream(key.data(), 0, 5, words.data(), samples / 8 - 1);
  return {VALGRIND_COUNT_ERRORS - before, 0, 0};
}

Found samples_of_words(const Kernels& kernels, double sigma) {
  std::vector<std::uint64_t> words(samples);
  for (std::size_t i = 0; i < samples; ++i) words[i] = (i * i + 1) * 0x9e3779b97f4a7c15u;
  std::vector<std::int64_t> out(samples);
  std::vector<std::uint32_t> ambiguous(samples);
  (void)VALGRIND_MAKE_MEM_UNDEFINED(words.data(), samples * sizeof words[0]);
  const unsigned before = VALGRIND_COUNT_ERRORS;
  std::size_t count =
      kernels.rounded_gaussian(words.data(), samples, &sigma, 0, out.data(), ambiguous.data());
  const unsigned found = VALGRIND_COUNT_ERRORS - before;
  (void)VALGRIND_MAKE_MEM_DEFINED(&count, sizeof count);
  return {found, samples / least_group, count};
}

Found samples_of_key(const Kernels& kernels, double sigma) {
  std::vector<std::uint32_t> key(8, 0x9e3779b9);
  std::vector<std::uint64_t> words(samples + 8);
  std::vector<std::int64_t> out(samples);
  std::vector<std::uint32_t> ambiguous(samples);
  (void)VALGRIND_MAKE_MEM_UNDEFINED(key.data(), key.size() * sizeof key[0]);
  const unsigned before = VALGRIND_COUNT_ERRORS;
  std::size_t count = kernels.gaussian_stream(key.data(), 0, samples, &sigma, 0, words.data(),
                                              out.data(), ambiguous.data());
  const unsigned found = VALGRIND_COUNT_ERRORS - before;
  (void)VALGRIND_MAKE_MEM_DEFINED(&count, sizeof count);
  return {found, samples / least_group, count};
}

bool holds(const char* target, const char* what, const Found& found) {
  if (found.branches <= found.allowed && !found.ambiguous) return true;
  std::printf("FAILED: %u branches or addresses, %u allowed, %zu ambiguous (%s, %s)\n",
              found.branches, found.allowed, found.ambiguous, target, what);
  return false;
}

}  // namespace

int main() {
  if (!RUNNING_ON_VALGRIND) return std::puts("run me under valgrind"), 1;
  bool all = true;
  const KernelTable table = kernel_table();
  for (std::size_t t = 0; t < table.count; ++t) {
    const Kernels& kernels = table.first[t];
    if (!kernels.supported()) continue;
    all &= holds(kernels.name, "key stream", key_stream(kernels));
    for (double sigma : {3.0, 0x1p12}) {
      all &= holds(kernels.name, "samples of words", samples_of_words(kernels, sigma));
      all &= holds(kernels.name, "samples of a key", samples_of_key(kernels, sigma));
    }
  }
  std::puts(all ? "time tells nothing of key and noise" : "noise can be told by its time");
  return !all;
}
