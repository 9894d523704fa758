#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings.hpp"

namespace py = pybind11;

namespace {
// Replaced with the interpreter's lock held; a call that runs keeps the one that it began with.
std::shared_ptr<const ellipsum::Choice> chosen;
}  // namespace

std::shared_ptr<const ellipsum::Choice> clip_choice() {
  if (!chosen) chosen = std::make_shared<const ellipsum::Choice>("");
  return chosen;
}

const ellipsum::Kernels& kernels() { return clip_choice()->kernels(); }

void bind_dispatch(py::module_& m) {
  m.def(
      "choose_target",
      [](const std::string& forced) {
        chosen = std::make_shared<const ellipsum::Choice>(forced);
        return chosen->name();
      },
      py::arg("forced"),
      "Fix the instruction set of every later call, or 'target:arrangement'; '' takes the best.");
  m.def("variants", &ellipsum::variant_names,
        "Every 'target:arrangement' of the clip kernels that this machine runs.");
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
