#include <pybind11/numpy.h>

#include "bindings.hpp"
#include "clip/exact_sum.hpp"
#include "numpy_view.hpp"

namespace py = pybind11;

static void merge(py::array low, py::array high, const py::array& other_low,
                  const py::array& other_high) {
  const std::size_t d = std::size_t(low.size());
  std::uint64_t* l = output_view<std::uint64_t>(low, d, "low");
  std::int64_t* h = output_view<std::int64_t>(high, d, "high");
  const std::uint64_t* ol = input_view<std::uint64_t>(other_low, d, "other_low");
  const std::int64_t* oh = input_view<std::int64_t>(other_high, d, "other_high");
  py::gil_scoped_release nogil;
  ellipsum::merge(d, l, h, ol, oh);
}

void bind_exact_sum(py::module_& m) {
  m.def("merge", &merge, py::arg("low"), py::arg("high"), py::arg("other_low"),
        py::arg("other_high"), "Add 128-bit totals (uint64 low words, int64 high words) in place.");
}
