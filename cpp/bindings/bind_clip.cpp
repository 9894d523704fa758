#include <pybind11/numpy.h>

#include "bindings.hpp"
#include "clip_sum.hpp"
#include "numpy_view.hpp"

namespace py = pybind11;

// Releasing the GIL is safe here as in every binding: the views point into arrays that the
// caller's frame keeps alive, and the core touches no Python object.
static py::tuple clip_sum(const py::array& rows, const py::array& center, const py::array& scale,
                          const py::array& matrix, const py::array& limit, double radius,
                          py::array partial, int threads) {
  const ellipsum::Batch batch = batch_view(rows);
  const std::size_t d = batch.d;
  ellipsum::Region region{};
  region.d = d;
  region.center = input_view<double>(center, d, "center");
  region.scale = scale.size() ? input_view<double>(scale, d, "scale") : nullptr;
  region.matrix = matrix.size() ? input_view<double>(matrix, d * d, "matrix") : nullptr;
  region.limit = limit.size() ? input_view<double>(limit, d, "limit") : nullptr;
  region.radius = radius;
  if (!region.scale == !region.matrix) bad_view("either scale or matrix");
  if (region.matrix && region.limit) bad_view("a box has no matrix");
  if (threads < 1) bad_view("threads");
  std::int64_t* out = output_view<std::int64_t>(partial, d, "partial");
  ellipsum::ClipCounts counts;
  {
    py::gil_scoped_release nogil;
    counts = ellipsum::clip_sum(kernels(), batch, region, out, threads);
  }
  return py::make_tuple(counts.clipped, counts.nonfinite);
}

void bind_clip(py::module_& m) {
  m.attr("CLIP_ROWS_LIMIT") = ellipsum::clip_rows_limit;
  m.def("clip_sum", &clip_sum, py::arg("rows"), py::arg("center"), py::arg("scale"),
        py::arg("matrix"), py::arg("limit"), py::arg("radius"), py::arg("partial"),
        py::arg("threads") = 1,
        "Add the clipped, quantised rows to `partial` (int64); returns (clipped, nonfinite).");
}
