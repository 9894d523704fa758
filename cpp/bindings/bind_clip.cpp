#include <pybind11/numpy.h>

#include "bindings.hpp"
#include "clip/clip_sum.hpp"
#include "clip/group_sums.hpp"
#include "numpy_view.hpp"

namespace py = pybind11;

static ellipsum::Region region_view(std::size_t d, const py::array& center, const py::array& scale,
                                    const py::array& matrix) {
  ellipsum::Region region{};
  region.d = d;
  region.center = input_view<double>(center, d, "center");
  region.scale = scale.size() ? input_view<double>(scale, d, "scale") : nullptr;
  region.matrix = matrix.size() ? input_view<double>(matrix, d * d, "matrix") : nullptr;
  if (!region.scale == !region.matrix) bad_view("either scale or matrix");
  return region;
}

// Releasing the GIL is safe here as in every binding: the views point into arrays that the
// caller's frame keeps alive, and the core touches no Python object.
static ellipsum::ClipCounts run(const ellipsum::Batch& batch, const ellipsum::Region& region,
                                std::int64_t* out, int threads, py::array& absent) {
  if (threads < 1) bad_view("threads");
  std::int64_t* holes =
      absent.size() ? output_view<std::int64_t>(absent, batch.d, "absent") : nullptr;
  const std::shared_ptr<const ellipsum::Choice> choice = clip_choice();
  py::gil_scoped_release nogil;
  return ellipsum::clip_sum(*choice, batch, region, out, threads, holes);
}

static py::tuple clip_sum(const py::array& rows, const py::array& center, const py::array& scale,
                          const py::array& matrix, const py::array& limit, double radius,
                          py::array partial, int threads, bool halves, py::array absent,
                          bool stretch) {
  using ellipsum::Task;
  const ellipsum::Batch batch = batch_view(rows);
  const std::size_t d = batch.d;
  ellipsum::Region region = region_view(d, center, scale, matrix);
  region.limit = limit.size() ? input_view<double>(limit, d, "limit") : nullptr;
  region.radius = radius;
  region.stretch = stretch;
  region.task = halves ? Task::halves : region.limit ? Task::box : Task::ball;
  if (region.limit && (region.matrix || halves)) bad_view("a box has no matrix and no halves");
  std::int64_t* out = output_view<std::int64_t>(partial, halves ? 2 * d : d, "partial");
  const ellipsum::ClipCounts counts = run(batch, region, out, threads, absent);
  return py::make_tuple(counts.clipped, counts.nonfinite);
}

static void distance_counts(const py::array& rows, const py::array& center, const py::array& scale,
                            const py::array& matrix, const py::array& edges, py::array counts,
                            int threads, py::array absent, bool stretch) {
  const ellipsum::Batch batch = batch_view(rows);
  ellipsum::Region region = region_view(batch.d, center, scale, matrix);
  region.task = ellipsum::Task::distances;
  region.stretch = stretch;
  region.bins = std::size_t(edges.size());
  if (region.bins < 1) bad_view("edges");
  region.edges = input_view<double>(edges, region.bins, "edges");
  run(batch, region, output_view<std::int64_t>(counts, region.bins, "counts"), threads, absent);
}

static py::tuple group_sums(const py::array& rows, const py::array& index, const py::array& center,
                            const py::array& scale, const py::array& matrix, const py::array& limit,
                            double radius, py::array table, py::array counts) {
  const ellipsum::Batch batch = batch_view(rows);
  ellipsum::Region region = region_view(batch.d, center, scale, matrix);
  region.limit = limit.size() ? input_view<double>(limit, batch.d, "limit") : nullptr;
  region.radius = radius;
  region.task = region.limit ? ellipsum::Task::box : ellipsum::Task::ball;
  if (region.limit && region.matrix) bad_view("a box has no matrix");
  if (batch.column_stride != (batch.dtype == ellipsum::Dtype::float32 ? 4 : 8))
    bad_view("rows must have contiguous coordinates");
  const std::size_t groups = std::size_t(counts.size());
  const std::int64_t* group = input_view<std::int64_t>(index, batch.n, "index");
  std::int64_t* sums = output_view<std::int64_t>(table, groups * batch.d, "table");
  std::int64_t* sizes = output_view<std::int64_t>(counts, groups, "counts");
  const ellipsum::ClipCounts seen = [&] {
    py::gil_scoped_release nogil;
    return ellipsum::group_sums(kernels(), batch, region, group, groups, sums, sizes);
  }();
  return py::make_tuple(seen.clipped, seen.nonfinite);
}

void bind_clip(py::module_& m) {
  m.attr("CLIP_ROWS_LIMIT") = ellipsum::clip_rows_limit;
  m.def(
      "clip_sum", &clip_sum, py::arg("rows"), py::arg("center"), py::arg("scale"),
      py::arg("matrix"), py::arg("limit"), py::arg("radius"), py::arg("partial"),
      py::arg("threads") = 1, py::arg("halves") = false,
      py::arg("absent") = py::array_t<std::int64_t>(0), py::arg("stretch") = false,
      "Add the clipped, quantised rows to `partial` (int64; 2 d entries for halves: sums of the "
      "positive integers, then of the negative ones' magnitudes), and the rows with a hole in a "
      "coordinate to `absent` (int64, d entries or none); with `stretch` the squared norm of a row "
      "counts d/k times, k of its d cells present; returns (clipped, nonfinite).");
  m.def("group_sums", &group_sums, py::arg("rows"), py::arg("index"), py::arg("center"),
        py::arg("scale"), py::arg("matrix"), py::arg("limit"), py::arg("radius"), py::arg("table"),
        py::arg("counts"),
        "Add each clipped, quantised row to the sums of its group in `table` (int64, groups x d), "
        "and 1 to its group in `counts`; index -1 is in no group. Returns (clipped, nonfinite).");
  m.def("distance_counts", &distance_counts, py::arg("rows"), py::arg("center"), py::arg("scale"),
        py::arg("matrix"), py::arg("edges"), py::arg("counts"), py::arg("threads") = 1,
        py::arg("absent") = py::array_t<std::int64_t>(0), py::arg("stretch") = false,
        "Add to `counts` (int64) the rows by the bins, ending at `edges`, of their distance, and "
        "the rows with a hole in a coordinate to `absent` (int64, d entries or none); `stretch` as "
        "in "
        "clip_sum.");
}
