// Asks the processor before test_simd.cpp runs. A file of its own, compiled for any machine: under a
// sanitizer the first instructions of a function that tests itself are the target's already.
#include <cstdio>
#include <cstring>

int test_simd(const char* path);

namespace {

bool supported(const char* target) {
#if defined(__x86_64__) || defined(_M_X64)
  if (!std::strcmp(target, "avx512"))
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  if (!std::strcmp(target, "avx2"))
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
#endif
  return !std::strcmp(target, "baseline");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  if (supported(arguments[1])) return test_simd(arguments[2]);
  std::puts("this machine does not run this target");
  return 0;
}
