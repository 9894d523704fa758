// Key stream, noise and quadratic forms under the sanitizers: every target against the
// baseline, and each against a value known from elsewhere.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "dispatch.hpp"
#include "noise/noise.hpp"
#include "quadratic_form/contour.hpp"
#include "quadratic_form/prepare.hpp"
#include "quadratic_form/quantile.hpp"
#include "quadratic_form/tail.hpp"

using namespace ellipsum;

namespace {

int failures = 0;

void check(bool ok, const char* what, const char* target, double at) {
  if (ok) return;
  ++failures;
  std::printf("%s: %s at %g\n", target, what, at);
}

const unsigned char zero_key[32] = {};

std::vector<std::uint64_t> words(const Kernels& k, std::uint64_t start, std::size_t n) {
  std::vector<std::uint64_t> out(n);
  fill_keystream(k, NoiseKey(zero_key), 0, start, out.data(), n);
  return out;
}

std::vector<std::int64_t> samples(const Kernels& k, const std::vector<double>& sigma,
                                  std::uint64_t start, std::size_t n, std::size_t threads) {
  std::vector<std::int64_t> out(n);
  fill_gaussian(k, NoiseKey(zero_key), {start, sigma.data(), sigma.size(), out.data(), n}, threads);
  return out;
}

void test_keystream(const Kernels& k, const Kernels& baseline) {
  // First block of the zero key (Bernstein's test vectors): 76 b8 e0 ad a0 f1 3d 90 ...
  check(words(k, 0, 1)[0] == 0x903df1a0ade0b876u, "first word", k.name, 0);
  for (std::size_t n : {1, 7, 8, 9, 127, 128, 129, 1000})
    for (std::uint64_t start : {0, 3, 8, 1021})
      check(words(k, start, n) == words(baseline, start, n), "key stream", k.name, double(n));
}

void test_samples(const Kernels& k, const Kernels& baseline) {
  const std::vector<std::vector<double>> sigmas = {
      {0x1p26}, {0.3}, {0x1p45}, {1.0, 0x1p30, 0.5, 0x1p50, 3.0}};
  for (const std::vector<double>& sigma : sigmas)
    for (std::size_t n : {1, 7, 64, 1000, 70000}) {
      const std::vector<std::int64_t> expected = samples(baseline, sigma, 5, n, 1);
      check(samples(k, sigma, 5, n, 1) == expected, "samples", k.name, double(n));
      check(samples(k, sigma, 5, n, 3) == expected, "samples, 3 threads", k.name, double(n));
    }
}

void test_forms(const Kernels& k) {
  const double two = 2, one = 1, none = 0;
  const QuadraticForm chi = prepare_form(&one, &two, &none, 1, 0, k);
  for (double q : {0.1, 2.0, 50.0, 1000.0}) {
    const FormTail t = form_tail(chi, q, k);
    const double upper = t.upper ? std::exp(t.log_small) : -std::expm1(t.log_small);
    check(std::fabs(upper / std::exp(-q / 2) - 1) < 1e-11, "chi-square, two dof", k.name, q);
  }
  std::vector<double> w, dof, noncentrality;
  for (int i = 1; i <= 300; ++i) {
    w.push_back((i % 3 ? 1.0 : -1.0) / i);
    dof.push_back(1 + i % 2 * 0.5);
    noncentrality.push_back(i % 5);
  }
  const QuadraticForm mixed = prepare_form(w.data(), dof.data(), noncentrality.data(), 300, 0.1, k);
  const FormQuantile found = form_quantile(mixed, std::log(1e-6), true, k);
  const FormTail t = form_tail(mixed, found.q, k);
  check(t.upper && std::fabs(t.log_small - std::log(1e-6)) < 1e-9, "quantile", k.name, found.q);
  check(!form_contour(mixed, found.q, k).t.empty(), "contour", k.name, found.q);
  const FormIntegral excess = form_moment(mixed, found.q, 1, FormMoment::excess, k);
  check(std::isfinite(excess.log_value), "moment", k.name, found.q);
}

}  // namespace

int main() {
  const KernelTable table = kernel_table();
  const Kernels& baseline = table.first[table.count - 1];
  for (std::size_t i = 0; i < table.count; ++i) {
    const Kernels& k = table.first[i];
    if (!k.supported()) continue;
    test_keystream(k, baseline);
    test_samples(k, baseline);
    test_forms(k);
  }
  std::printf(failures ? "%d checks failed\n" : "noise and forms agree\n", failures);
  return failures != 0;
}
