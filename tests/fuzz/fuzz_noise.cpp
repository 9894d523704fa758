// Any words, deviations and places of the stream: every target and thread count draws the same
// samples, and each is the nearest integer to sigma z(U), as the error function sees it.
#include <vector>

#include "dispatch.hpp"
#include "input.hpp"
#include "noise/noise.hpp"

using namespace ellipsum;

namespace {

constexpr int most_exponent = 58;  // SIGMA_MAX of noise.py

struct Draw {
  std::vector<std::int64_t> samples;
  std::vector<std::uint64_t> undecided;
  bool operator==(const Draw& o) const {
    return samples == o.samples && undecided == o.undecided;
  }
};

// Upper tail of the normal distribution at (s - 1/2) / sigma, s >= 0.
long double tail_below(std::uint64_t s, double sigma) {
  return std::erfc((static_cast<long double>(s) - 0.5L) / sigma / std::sqrt(2.0L)) / 2;
}

// |sample| is s where tail(s + 1/2) <= p <= tail(s - 1/2), p the smaller of U and 1 - U.
void check_sample(std::int64_t sample, std::uint64_t high, std::uint64_t low, double sigma) {
  const bool upper = high >> 63;
  const long double p = (static_cast<long double>(upper ? ~high : high) +
                         static_cast<long double>(upper ? ~low : low) * 0x1p-64L) * 0x1p-64L;
  const std::uint64_t s = sample < 0 ? std::uint64_t(-sample) : std::uint64_t(sample);
  require(s == 0 || upper == (sample > 0), "the sign");
  // erfc is good to a few units of 2^-63 but its argument is rounded: 2^-64 z^2 of the tail.
  const long double slack = 1e-14L, tiny = 0x1p-126L;
  if (s > 0) require(p <= tail_below(s, sigma) * (1 + slack) + tiny, "not too far out");
  require(p >= tail_below(s + 1, sigma) * (1 - slack) - tiny, "not too near");
}

std::vector<std::uint64_t> take_words(Input& in, std::size_t n) {
  std::vector<std::uint64_t> words(n);
  for (std::uint64_t& w : words) {
    w = in.take<std::uint64_t>();
    const std::uint64_t kind = in.between(0, 3);
    if (kind == 1) w >>= in.between(0, 63);    // lower tail
    if (kind == 2) w = ~(w >> in.between(0, 63));  // upper tail
  }
  return words;
}

void check_words(const std::vector<double>& sigma, Input& in, std::size_t n) {
  const std::vector<std::uint64_t> first = take_words(in, n), second = take_words(in, n);
  const KernelTable table = kernel_table();
  Draw wanted;
  for (std::size_t t = table.count; t-- > 0;) {
    if (!table.first[t].supported()) continue;
    Draw draw{std::vector<std::int64_t>(n), {}};
    draw.undecided = gaussian_of_words(table.first[t], first.data(), second.data(),
                                       {0, sigma.data(), sigma.size(), draw.samples.data(), n});
    if (t + 1 == table.count) wanted = draw;
    for (std::uint64_t i : draw.undecided) draw.samples[i] = wanted.samples[i];
    require(draw == wanted, "the same samples:", table.first[t].name);
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (next < wanted.undecided.size() && wanted.undecided[next] == i) ++next;
    else check_sample(wanted.samples[i], first[i], second[i], sigma[i % sigma.size()]);
  }
}

void check_streams(const std::vector<double>& sigma, Input& in) {
  unsigned char bytes[32];
  for (unsigned char& b : bytes) b = in.take<unsigned char>();
  const NoiseKey key(bytes);
  const std::uint64_t start = in.take<std::uint64_t>() >> (4 + in.between(0, 59));
  const std::size_t n = in.between(1, 600);
  const KernelTable table = kernel_table();
  Draw wanted;
  std::vector<std::uint64_t> words(n), stream(n);
  for (std::size_t t = table.count; t-- > 0;) {
    const Kernels& kernels = table.first[t];
    if (!kernels.supported()) continue;
    const bool first = t + 1 == table.count;
    fill_keystream(kernels, key, 0, start, words.data(), n);
    if (first) stream = words;
    require(words == stream, "the same key stream:", kernels.name);
    for (std::size_t threads : {1u, 2u}) {
      Draw draw{std::vector<std::int64_t>(n), {}};
      draw.undecided = fill_gaussian(
          kernels, key, {start, sigma.data(), sigma.size(), draw.samples.data(), n}, threads);
      if (first && threads == 1) wanted = draw;
      require(draw == wanted, "the same noise:", kernels.name);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  std::vector<double> sigma;
  for (std::size_t k = 0, d = in.between(1, 5); k < d; ++k)
    sigma.push_back(in.between(0, 7) ? in.scale(-6, most_exponent) : in.scale(-1000, most_exponent));
  check_words(sigma, in, in.between(1, 40));
  check_streams(sigma, in);
  return 0;
}
