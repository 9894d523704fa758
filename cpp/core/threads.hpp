// Work in parts, a thread each.
#pragma once
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace ellipsum {

// Calls part(0), ..., part(count - 1), each on a thread of its own, the first on the caller's;
// where no thread can be had, the caller's does more. The first exception is thrown again
// after all have ended.
template <typename Part> void run_parts(std::size_t count, const Part& part) {
  std::vector<std::exception_ptr> errors(count);
  const auto run = [&](std::size_t i) noexcept {
    try {
      part(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(count);
  std::size_t next = 1;
  try {
    for (; next < count; ++next) others.emplace_back(run, next);
  } catch (const std::system_error&) {
  }
  if (count) run(0);
  for (; next < count; ++next) run(next);
  for (std::thread& t : others) t.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace ellipsum
