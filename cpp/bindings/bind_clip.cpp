#include <pybind11/numpy.h>

#include "bindings.hpp"
#include "clip/clip_sum.hpp"
#include "clip/few_rows.hpp"
#include "clip/group_sums.hpp"
#include "numpy_view.hpp"
#include "table_view.hpp"

namespace py = pybind11;

// `scale`, `matrix`, or both: then the matrix holds the factors U and V, (2, d, rank).
static ellipsum::Region region_view(std::size_t d, const py::array& center, const py::array& scale,
                                    const py::array& matrix) {
  ellipsum::Region region{};
  region.d = d;
  region.center = input_view<double>(center, d, "center");
  region.scale = scale.size() ? input_view<double>(scale, d, "scale") : nullptr;
  if (matrix.size() && region.scale) {
    region.rank = std::size_t(matrix.size()) / (2 * d);
    if (region.rank < 1 || region.rank > d) bad_view("rank");
    region.factors = input_view<double>(matrix, 2 * d * region.rank, "matrix");
  } else if (matrix.size()) {
    region.matrix = input_view<double>(matrix, d * d, "matrix");
  }
  if (!region.scale && !region.matrix) bad_view("either scale or matrix");
  return region;
}

// Cells are moved into it first; without numbers there is none. Its rows have no holes to count.
static void set_cell_box(ellipsum::Region& region, const py::array& lower, const py::array& upper,
                         const py::array& absent) {
  if (!lower.size() && !upper.size()) return;
  if (absent.size()) bad_view("a box of cells leaves no holes");
  region.lower = input_view<double>(lower, region.d, "lower");
  region.upper = input_view<double>(upper, region.d, "upper");
}

static bool is_mixed(const ellipsum::Region& region) { return region.matrix || region.rank; }

// Releasing the GIL is safe here as in every binding: the views point into arrays that the
// caller's frame keeps alive, and the core touches no Python object.
template <class Rows>
static ellipsum::ClipCounts run(const Rows& rows, const ellipsum::Region& region, std::int64_t* out,
                                int threads, py::array& absent) {
  if (threads < 1) bad_view("threads");
  std::int64_t* holes =
      absent.size() ? output_view<std::int64_t>(absent, region.d, "absent") : nullptr;
  const std::shared_ptr<const ellipsum::Choice> choice = clip_choice();
  py::gil_scoped_release nogil;
  return ellipsum::clip_sum(*choice, rows, region, out, threads, holes);
}

// An array, or a ColumnBlock.
static ellipsum::ClipCounts run_any(const py::object& rows, const ellipsum::Region& region,
                                    std::int64_t* out, int threads, py::array& absent) {
  if (py::isinstance<py::array>(rows)) {
    const ellipsum::Batch batch = batch_view(py::reinterpret_borrow<py::array>(rows));
    if (batch.d != region.d) bad_view("rows");
    return run(batch, region, out, threads, absent);
  }
  const ColumnViews views(rows);
  if (views.table().d != region.d) bad_view("columns");
  return run(views.table(), region, out, threads, absent);
}

static py::tuple clip_sum(const py::object& rows, const py::array& center, const py::array& scale,
                          const py::array& matrix, const py::array& limit, double radius,
                          py::array partial, int threads, bool halves, py::array absent,
                          bool stretch, const py::array& lower, const py::array& upper) {
  using ellipsum::Task;
  const std::size_t d = std::size_t(center.size());
  ellipsum::Region region = region_view(d, center, scale, matrix);
  region.limit = limit.size() ? input_view<double>(limit, d, "limit") : nullptr;
  region.radius = radius;
  region.stretch = stretch;
  set_cell_box(region, lower, upper, absent);
  region.task = halves ? Task::halves : region.limit ? Task::box : Task::ball;
  if (region.limit && (is_mixed(region) || halves)) bad_view("a box has no matrix and no halves");
  std::int64_t* out = output_view<std::int64_t>(partial, halves ? 2 * d : d, "partial");
  const ellipsum::ClipCounts counts = run_any(rows, region, out, threads, absent);
  return py::make_tuple(counts.clipped, counts.nonfinite);
}

// "target:arrangement" of a pass over such rows, and whether it was measured.
static py::tuple variant_of(const py::object& rows, bool halves, bool ball) {
  ellipsum::Region region{};
  if (ball) region.form = ellipsum::Form::ball;
  region.task = halves ? ellipsum::Task::halves : ellipsum::Task::ball;
  const std::shared_ptr<const ellipsum::Choice> choice = clip_choice();
  const auto answer = [&](const ellipsum::Batch& batch) {
    const auto [variant, known] = choice->choose(batch, region);
    const char* const names[] = {"unmeasured", "leader so far", "fastest"};
    return py::make_tuple(std::string(variant.kernels->name) + ":" + variant.arrangement->name,
                          names[known]);
  };
  if (py::isinstance<py::array>(rows))
    return answer(batch_view(py::reinterpret_borrow<py::array>(rows)));
  const ColumnViews views(rows);
  return answer(ellipsum::TableRows(views.table()).batch());
}

static void distance_counts(const py::object& rows, const py::array& center, const py::array& scale,
                            const py::array& matrix, const py::array& edges, py::array counts,
                            int threads, py::array absent, bool stretch, const py::array& lower,
                            const py::array& upper) {
  ellipsum::Region region = region_view(std::size_t(center.size()), center, scale, matrix);
  region.task = ellipsum::Task::distances;
  region.stretch = stretch;
  set_cell_box(region, lower, upper, absent);
  region.bins = std::size_t(edges.size());
  if (region.bins < 1) bad_view("edges");
  region.edges = input_view<double>(edges, region.bins, "edges");
  run_any(rows, region, output_view<std::int64_t>(counts, region.bins, "counts"), threads, absent);
}

static py::tuple group_sums(const py::array& rows, const py::array& index, const py::array& center,
                            const py::array& scale, const py::array& matrix, const py::array& limit,
                            double radius, py::array table, py::array counts, bool stretch) {
  const ellipsum::Batch batch = float_view(rows);
  ellipsum::Region region = region_view(batch.d, center, scale, matrix);
  region.stretch = stretch;
  region.limit = limit.size() ? input_view<double>(limit, batch.d, "limit") : nullptr;
  region.radius = radius;
  region.task = region.limit ? ellipsum::Task::box : ellipsum::Task::ball;
  if (region.limit && is_mixed(region)) bad_view("a box has no matrix");
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

namespace {

// A few rows at a time into two arrays that it keeps. The lock of the interpreter is held: a call
// takes a microsecond or two.
class FewRows {
 public:
  FewRows(const py::array& center, const py::array& scale, const py::array& limit, double radius,
          py::array low, py::array high)
      : low_(std::move(low)),
        high_(std::move(high)),
        few_(region_of(center, scale, limit, radius)) {
    low_words_ = output_view<std::uint64_t>(low_, few_.d() + counts_, "low");
    high_words_ = output_view<std::int64_t>(high_, few_.d() + counts_, "high");
  }

  // Were they added? Not of an array that is not (d,) or (n, d), or not ready.
  bool add(const py::array& rows) {
    const bool one = rows.ndim() == 1;
    if (!one && rows.ndim() != 2) return false;
    if (std::size_t(rows.shape(one ? 0 : 1)) != few_.d() || !is_ready(rows)) return false;
    const py::ssize_t size = rows.itemsize();
    const ellipsum::Batch batch =
        one ? ellipsum::Batch{rows.data(), dtype_of(rows, "rows"),       1,
                              few_.d(),    size * py::ssize_t(few_.d()), rows.strides(0)}
            : batch_view(rows);
    few_.add(*clip_choice(), batch, low_words_, high_words_);
    return true;
  }

 private:
  static ellipsum::Region region_of(const py::array& center, const py::array& scale,
                                    const py::array& limit, double radius) {
    const std::size_t d = std::size_t(center.size());
    ellipsum::Region region = region_view(d, center, scale, py::array_t<double>(0));
    region.limit = limit.size() ? input_view<double>(limit, d, "limit") : nullptr;
    region.radius = radius;
    region.task = region.limit ? ellipsum::Task::box : ellipsum::Task::ball;
    return region;
  }

  static constexpr std::size_t counts_ = ellipsum::FewRows::counts;
  py::array low_, high_;
  ellipsum::FewRows few_;
  std::uint64_t* low_words_;
  std::int64_t* high_words_;
};

}  // namespace

void bind_clip(py::module_& m) {
  py::class_<FewRows>(m, "FewRows", "Adds a few rows at a time to 128-bit totals.")
      .def(py::init<const py::array&, const py::array&, const py::array&, double, py::array,
                    py::array>(),
           py::arg("center"), py::arg("scale"), py::arg("limit"), py::arg("radius"), py::arg("low"),
           py::arg("high"))
      .def("add", &FewRows::add, py::arg("rows"),
           "Add (d,) or (n, d) in place, and rows, clipped and nonfinite ones behind the sums; "
           "False for an array that is not of native, aligned numbers of that shape.");
  m.attr("CLIP_ROWS_LIMIT") = ellipsum::clip_rows_limit;
  m.def(
      "clip_sum", &clip_sum, py::arg("rows"), py::arg("center"), py::arg("scale"),
      py::arg("matrix"), py::arg("limit"), py::arg("radius"), py::arg("partial"),
      py::arg("threads") = 1, py::arg("halves") = false,
      py::arg("absent") = py::array_t<std::int64_t>(0), py::arg("stretch") = false,
      py::arg("lower") = py::array_t<double>(0), py::arg("upper") = py::array_t<double>(0),
      "Add the clipped, quantised rows to `partial` (int64; 2 d entries for halves: sums of the "
      "positive integers, then of the negative ones' magnitudes), and the rows with a hole in a "
      "coordinate to `absent` (int64, d entries or none); with `stretch` the squared norm of a row "
      "counts d/k times, k of its d cells present; cells are first moved into [lower, upper], if "
      "these "
      "are given, and holes to the center; returns (clipped, nonfinite).");
  m.def("variant_of", &variant_of, py::arg("rows"), py::arg("halves") = false,
        py::arg("ball") = false,
        "Which 'target:arrangement' a pass over such rows would run, in a region of "
        "one scale for all coordinates (`ball`) or of their own, and how that is known: "
        "'unmeasured', 'leader so far' or 'fastest'.");
  m.def("group_sums", &group_sums, py::arg("rows"), py::arg("index"), py::arg("center"),
        py::arg("scale"), py::arg("matrix"), py::arg("limit"), py::arg("radius"), py::arg("table"),
        py::arg("counts"), py::arg("stretch") = false,
        "Add each clipped, quantised row to the sums of its group in `table` (int64, groups x d), "
        "and 1 to its group in `counts`; index -1 is in no group; `stretch` as in clip_sum. "
        "Returns (clipped, nonfinite).");
  m.def("distance_counts", &distance_counts, py::arg("rows"), py::arg("center"), py::arg("scale"),
        py::arg("matrix"), py::arg("edges"), py::arg("counts"), py::arg("threads") = 1,
        py::arg("absent") = py::array_t<std::int64_t>(0), py::arg("stretch") = false,
        py::arg("lower") = py::array_t<double>(0), py::arg("upper") = py::array_t<double>(0),
        "Add to `counts` (int64) the rows by the bins, ending at `edges`, of their distance, and "
        "the rows with a hole in a coordinate to `absent` (int64, d entries or none); `stretch`, "
        "`lower` and `upper` as in clip_sum.");
}
