// The table of contents of `ellipsum.kernels._core`: one bind_*.cpp a topic.
#include <pybind11/pybind11.h>

#include "bindings.hpp"
#include "error.hpp"

namespace py = pybind11;

PYBIND11_MODULE(_core, m) {
  m.doc() = "C++ kernels of ellipsum; see python/ellipsum/kernels/backend.py for who calls them.";
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const ellipsum::Exception& e) {
      PyErr_SetString(PyExc_ValueError, e.what());
    }
  });
  bind_dispatch(m);
  bind_clip(m);
  bind_records(m);
  bind_exact_sum(m);
  bind_users(m);
  bind_keys(m);
  bind_noise(m);
  bind_quadratic_form(m);
  bind_gaussian_pair(m);
}
