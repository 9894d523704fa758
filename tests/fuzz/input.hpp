// What a fuzz target makes of its bytes, and what it does when a property fails.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

// Reads numbers off the front of the input; zeros when it is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  template <class T>
  T take() {
    T value{};
    const std::size_t n = sizeof value < left_ ? sizeof value : left_;
    if (n) std::memcpy(&value, data_, n);
    data_ += n, left_ -= n;
    return value;
  }
  // In [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + take<std::uint16_t>() % (high - low + 1);
  }
  // m 2^e with a mantissa of 24 bits in [1/2, 1) and e in [low, high].
  double scale(int low, int high) {
    const double mantissa = std::ldexp(double(take<std::uint32_t>() >> 9 | 1u << 23), -24);
    return std::ldexp(mantissa, low + int(between(0, std::uint64_t(high - low))));
  }
  std::string text() {
    std::string s(reinterpret_cast<const char*>(data_), left_);
    left_ = 0;
    return s;
  }
  bool empty() const { return left_ == 0; }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

// Ends the run: libFuzzer keeps the input.
inline void require(bool holds, const char* property, const char* target = "") {
  if (holds) return;
  std::fprintf(stderr, "property failed: %s %s\n", property, target);
  std::abort();
}
