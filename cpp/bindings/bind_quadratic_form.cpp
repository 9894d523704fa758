#include <pybind11/complex.h>
#include <pybind11/numpy.h>

#include <vector>

#include "bindings.hpp"
#include "numpy_view.hpp"
#include "quadratic_form/batch.hpp"
#include "quadratic_form/contour.hpp"
#include "quadratic_form/prepare.hpp"
#include "quadratic_form/tail.hpp"

namespace py = pybind11;
using ellipsum::QuadraticForm;

namespace {

constexpr std::size_t point_columns = 6;  // log_small, log_pdf, error, pdf_error, upper, nodes

QuadraticForm prepared_form(const py::array& weights, const py::array& dof,
                            const py::array& noncentrality, double normal_sd) {
  const std::size_t n = std::size_t(weights.size());
  const double* w = input_view<double>(weights, n, "weights");
  const double* k = input_view<double>(dof, n, "dof");
  const double* l = input_view<double>(noncentrality, n, "noncentrality");
  py::gil_scoped_release nogil;
  return ellipsum::prepare_form(w, k, l, n, normal_sd, kernels());
}

py::tuple tail(const QuadraticForm& form, double q) {
  ellipsum::FormTail t;
  {
    py::gil_scoped_release nogil;
    t = ellipsum::form_tail(form, q, kernels());
  }
  return py::make_tuple(t.log_small, t.log_pdf, t.error, t.pdf_error, t.upper, t.nodes);
}

void tails(const QuadraticForm& form, const py::array& q, py::array out, std::size_t threads) {
  const std::size_t n = std::size_t(q.size());
  const double* in = input_view<double>(q, n, "q");
  double* row = output_view<double>(out, n * point_columns, "out");
  py::gil_scoped_release nogil;
  std::vector<ellipsum::FormTail> found(n);
  ellipsum::form_tails(form, in, n, found.data(), threads, kernels());
  for (const ellipsum::FormTail& t : found) {
    row[0] = t.log_small;
    row[1] = t.log_pdf;
    row[2] = t.error;
    row[3] = t.pdf_error;
    row[4] = t.upper;
    row[5] = t.nodes;
    row += point_columns;
  }
}

py::tuple moment(const QuadraticForm& form, double q, bool upper, int which) {
  if (which < 0 || which > int(ellipsum::FormMoment::shortfall)) bad_view("moment");
  ellipsum::FormIntegral i;
  {
    py::gil_scoped_release nogil;
    i = ellipsum::form_moment(form, q, upper ? 1 : -1, ellipsum::FormMoment(which), kernels());
  }
  return py::make_tuple(i.log_value, i.error, i.nodes);
}

py::tuple quantile(const QuadraticForm& form, double log_tail, bool upper) {
  ellipsum::FormQuantile found;
  {
    py::gil_scoped_release nogil;
    found = ellipsum::form_quantile(form, log_tail, upper, kernels());
  }
  return py::make_tuple(found.q, found.error, found.evaluations);
}

void quantiles(const QuadraticForm& form, const py::array& log_tail, const py::array& upper,
               py::array out, std::size_t threads) {
  const std::size_t n = std::size_t(log_tail.size());
  const double* tail = input_view<double>(log_tail, n, "log_tail");
  const double* side = input_view<double>(upper, n, "upper");
  double* row = output_view<double>(out, n * 2, "out");
  py::gil_scoped_release nogil;
  std::vector<ellipsum::FormQuantile> found(n);
  ellipsum::form_quantiles(form, tail, side, n, found.data(), threads, kernels());
  for (const ellipsum::FormQuantile& f : found) {
    *row++ = f.q;
    *row++ = f.error;
  }
}

py::tuple contour(const QuadraticForm& form, double q) {
  ellipsum::FormContour c;
  {
    py::gil_scoped_release nogil;
    c = ellipsum::form_contour(form, q, kernels());
  }
  using Array = py::array_t<std::complex<double>>;
  return py::make_tuple(Array(py::ssize_t(c.t.size()), c.t.data()),
                        Array(py::ssize_t(c.weight.size()), c.weight.data()));
}

}  // namespace

void bind_quadratic_form(py::module_& m) {
  py::class_<QuadraticForm> form(m, "FormTable");
  bind_form_hockey_stick(form);
  form.def(py::init(&prepared_form), py::arg("weights"), py::arg("dof"), py::arg("noncentrality"),
           py::arg("normal_sd"))
      .def("tail", &tail, py::arg("q"),
           "(log of the smaller tail, log density, their errors, is it the upper?, nodes).")
      .def("moment", &moment, py::arg("q"), py::arg("upper"), py::arg("which"),
           "(log E[g(Q); Q beyond q], its error, nodes); g: 0 one, 1 excess, 2 root, 3 shortfall.")
      .def("quantile", &quantile, py::arg("log_tail"), py::arg("upper"),
           "(q, error, evaluations) where the tail's logarithm is log_tail <= log 1/2.")
      .def("quantiles", &quantiles, py::arg("log_tail"), py::arg("upper"), py::arg("out"),
           py::arg("threads") = 1, "(q, error) of many, a row each.")
      .def("contour", &contour, py::arg("q"),
           "Nodes t and weights whose real parts, times G(t), sum to a functional at q.")
      .def("tails", &tails, py::arg("q"), py::arg("out"), py::arg("threads") = 1,
           "The same for many q, a row each.");
}
