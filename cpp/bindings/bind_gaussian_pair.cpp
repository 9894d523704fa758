#include <pybind11/numpy.h>

#include <vector>

#include "bindings.hpp"
#include "numpy_view.hpp"
#include "quadratic_form/pair.hpp"

namespace py = pybind11;
using ellipsum::FormTail;
using ellipsum::GaussianPair;
using ellipsum::QuadraticForm;

namespace {

constexpr std::size_t pair_columns = 4;  // log_delta, log_slope, error, nodes

template <class Law>
using Fill = void (*)(const Law&, const double*, std::size_t, FormTail*, std::size_t,
                      const ellipsum::Kernels&);

template <class Law, Fill<Law> fill>
void many(const Law& law, const py::array& epsilon, py::array out, std::size_t threads) {
  const std::size_t n = std::size_t(epsilon.size());
  const double* in = input_view<double>(epsilon, n, "epsilon");
  double* row = output_view<double>(out, n * pair_columns, "out");
  py::gil_scoped_release nogil;
  std::vector<FormTail> found(n);
  fill(law, in, n, found.data(), threads, kernels());
  for (const FormTail& t : found) {
    row[0] = t.log_small;
    row[1] = t.log_pdf;
    row[2] = t.error;
    row[3] = t.nodes;
    row += pair_columns;
  }
}

template <class Law, Fill<Law> fill> py::tuple one(const Law& law, double epsilon) {
  FormTail t;
  {
    py::gil_scoped_release nogil;
    fill(law, &epsilon, 1, &t, 1, kernels());
  }
  return py::make_tuple(t.log_small, t.log_pdf, t.error, t.nodes);
}

constexpr char one_doc[] =
    "(log E(1 - e^(epsilon - Q))+, log of minus its derivative, relative error, nodes).";

static_assert(sizeof(ellipsum::PairRow) == 7 * sizeof(double));

GaussianPair prepared_pair(const py::array& rows, double edge_roundoff) {
  const std::size_t n = std::size_t(rows.size()) / 7;
  const double* first = input_view<double>(rows, n * 7, "rows");
  py::gil_scoped_release nogil;
  return ellipsum::prepare_pair(reinterpret_cast<const ellipsum::PairRow*>(first), n,
                                edge_roundoff);
}

py::tuple cumulants(const GaussianPair& pair, double t) {
  const ellipsum::PairCumulants c = ellipsum::pair_cumulants(pair, t);
  return py::make_tuple(c.log_mgf, c.slope, c.bend);
}

}  // namespace

void bind_form_hockey_stick(py::class_<QuadraticForm>& form) {
  form.def("hockey_stick", &one<QuadraticForm, ellipsum::form_hockey_sticks>, py::arg("epsilon"),
           one_doc)
      .def("hockey_sticks", &many<QuadraticForm, ellipsum::form_hockey_sticks>, py::arg("epsilon"),
           py::arg("out"), py::arg("threads") = 1, "The same of many, a row each.");
}

void bind_gaussian_pair(py::module_& m) {
  py::class_<GaussianPair>(m, "PairTable")
      .def(py::init(&prepared_pair), py::arg("rows"), py::arg("edge_roundoff"))
      .def("cumulants", &cumulants, py::arg("t"), "K(t), K'(t) and K''(t) of the loss.")
      .def("hockey_stick", &one<GaussianPair, ellipsum::pair_hockey_sticks>, py::arg("epsilon"),
           one_doc)
      .def("hockey_sticks", &many<GaussianPair, ellipsum::pair_hockey_sticks>, py::arg("epsilon"),
           py::arg("out"), py::arg("threads") = 1, "The same of many, a row each.");
}
