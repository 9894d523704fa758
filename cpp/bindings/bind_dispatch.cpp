#include <pybind11/stl.h>

#include <atomic>
#include <string>
#include <vector>

#include "bindings.hpp"

namespace py = pybind11;

namespace {
std::atomic<const ellipsum::Kernels*> chosen{nullptr};
}

const ellipsum::Kernels& kernels() {
  const ellipsum::Kernels* k = chosen.load(std::memory_order_acquire);
  return k ? *k : ellipsum::choose_kernels("");
}

void bind_dispatch(py::module_& m) {
  m.def(
      "choose_target",
      [](const std::string& forced) {
        const ellipsum::Kernels& k = ellipsum::choose_kernels(forced);
        chosen.store(&k, std::memory_order_release);
        return std::string(k.name);
      },
      py::arg("forced"), "Fix the instruction set of every later call; '' takes the best.");
  m.def(
      "targets",
      [] {
        std::vector<std::string> names;
        const ellipsum::KernelTable t = ellipsum::kernel_table();
        for (std::size_t i = 0; i < t.count; ++i)
          if (t.first[i].supported()) names.emplace_back(t.first[i].name);
        return names;
      },
      "Instruction sets in this build that this machine runs, best first.");
}
