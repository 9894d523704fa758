#include <pybind11/numpy.h>

#include "bindings.hpp"
#include "numpy_view.hpp"
#include "users/row_ranks.hpp"
#include "users/run_means.hpp"

namespace py = pybind11;

static void run_means(const py::array& rows, const py::array& ends, py::array state, py::array out,
                      bool divide) {
  const ellipsum::Batch batch = float_view(rows);
  const std::size_t runs = std::size_t(ends.size());
  const std::int64_t* to = input_view<std::int64_t>(ends, runs, "ends");
  std::int64_t* open = output_view<std::int64_t>(state, batch.d * ellipsum::state_words, "state");
  double* means = output_view<double>(out, batch.d * runs, "out");
  const ellipsum::Kernels& kernels = ::kernels();
  py::gil_scoped_release nogil;
  ellipsum::run_means(kernels, batch, to, runs, open, means, divide);
}

static void row_ranks(const py::array& rows, const py::array& words, const py::array& which,
                      py::array ranks) {
  const ellipsum::Batch batch = float_view(rows);
  const std::size_t n = std::size_t(which.size());
  const std::uint64_t* of_users = input_view<std::uint64_t>(words, 2 * batch.n, "words");
  const std::int64_t* chosen = input_view<std::int64_t>(which, n, "which");
  std::uint64_t* to = output_view<std::uint64_t>(ranks, n, "ranks");
  const ellipsum::Kernels& kernels = ::kernels();
  py::gil_scoped_release nogil;
  ellipsum::row_ranks(kernels, batch, of_users, chosen, n, to);
}

void bind_users(py::module_& m) {
  m.attr("RUN_STATE_WORDS") = ellipsum::state_words;
  m.def("run_means", &run_means, py::arg("rows"), py::arg("ends"), py::arg("state"), py::arg("out"),
        py::arg("divide"),
        "Write to `out` (runs, d) the correctly rounded mean, or sum, of each run of rows; `state` "
        "(int64, d x RUN_STATE_WORDS, at first zeros) holds what is open of the last.");
  m.def(
      "row_ranks", &row_ranks, py::arg("rows"), py::arg("words"), py::arg("which"),
      py::arg("ranks"),
      "Write to `ranks` (uint64) a hash of each of the rows at `which`, which are contiguous, and "
      "of its two `words`: the same for rows of equal numbers.");
}
