#include <pybind11/numpy.h>

#include <algorithm>
#include <limits>

#include "bindings.hpp"
#include "numpy_view.hpp"

namespace py = pybind11;

namespace {

// Records whose numbers are read by this code and Python's own: no code of theirs is run.
class PlainRecords {
 public:
  explicit PlainRecords(std::size_t d) : d_(py::ssize_t(d)) {}

  // Is the record d such numbers? Then they are written to the row; else something of them may be.
  bool read(PyObject* record, double* row) const {
    if (Py_TYPE(record) == array_type_) return read_array(record, row);
    if (PyList_CheckExact(record))
      return PyList_GET_SIZE(record) == d_ &&
             read_cells([record](py::ssize_t j) { return PyList_GET_ITEM(record, j); }, row);
    if (PyTuple_CheckExact(record))
      return PyTuple_GET_SIZE(record) == d_ &&
             read_cells([record](py::ssize_t j) { return PyTuple_GET_ITEM(record, j); }, row);
    return d_ == 1 && read_cell(record, *row);
  }

  // A record of an array is three places in memory, each known by the one before: they are asked
  // for some records ahead, those of the nearest last; of long ones the first lines, behind which the
  // processor asks by itself. (The numbers of records and lines were not tried against others.)
  void ask_for(PyObject* const* records, py::ssize_t left) const {
    if (left > 3 * ahead_) prefetch(records[3 * ahead_]);
    if (left > 2 * ahead_ && is_array(records[2 * ahead_]))
      prefetch(proxy(records[2 * ahead_])->dimensions);
    if (left > ahead_ && is_array(records[ahead_])) {
      const auto* data = proxy(records[ahead_])->data;
      const py::ssize_t lines = std::min<py::ssize_t>(d_ / 8 + 1, 4);
      for (py::ssize_t k = 0; k < lines; ++k) prefetch(data + 64 * k);
    }
  }

 private:
  static constexpr py::ssize_t ahead_ = 6;

  static void prefetch(const void* at) { __builtin_prefetch(at); }
  static const py::detail::PyArray_Proxy* proxy(PyObject* array) {
    return py::detail::array_proxy(array);
  }
  bool is_array(PyObject* record) const { return Py_TYPE(record) == array_type_; }

  bool read_array(PyObject* record, double* row) const {
    const auto* array = proxy(record);
    if (array->nd != 1 || array->dimensions[0] != d_ ||
        !(array->flags & py::detail::npy_api::NPY_ARRAY_ALIGNED_))
      return false;
    if (array->descr == doubles_.ptr()) copy<double>(array->data, array->strides[0], row);
    else if (array->descr == floats_.ptr()) copy<float>(array->data, array->strides[0], row);
    else return false;
    return true;
  }

  template <class T> void copy(const char* from, py::ssize_t stride, double* row) const {
    if (stride == py::ssize_t(sizeof(T))) {
      const T* numbers = reinterpret_cast<const T*>(from);
      for (py::ssize_t j = 0; j < d_; ++j) row[j] = double(numbers[j]);
    } else {
      for (py::ssize_t j = 0; j < d_; ++j)
        row[j] = double(*reinterpret_cast<const T*>(from + j * stride));
    }
  }

  template <class Cells> bool read_cells(Cells cells, double* row) const {
    for (py::ssize_t j = 0; j < d_; ++j) {
      if (!read_cell(cells(j), row[j])) return false;
    }
    return true;
  }

  // Floats of Python or NumPy (of 64 bits: Python's with another name), Python's integers of up to 64
  // bits and Decimals, each rounded once, truth values, and None, which is a hole.
  bool read_cell(PyObject* cell, double& number) const {
    if (PyFloat_CheckExact(cell) || Py_TYPE(cell) == scalar_type_) {
      number = PyFloat_AS_DOUBLE(cell);
    } else if (PyLong_CheckExact(cell)) {
      int beyond = 0;
      number = double(PyLong_AsLongLongAndOverflow(cell, &beyond));
      return !beyond;
    } else if (cell == Py_None) {
      number = std::numeric_limits<double>::quiet_NaN();
    } else if (PyBool_Check(cell)) {
      number = cell == Py_True;
    } else if (Py_TYPE(cell) == decimal_type_) {
      number = of_decimal(py::reinterpret_borrow<py::object>(cell));
    } else {
      return false;
    }
    return true;
  }

  // C code: it runs nothing of anybody's, and raises for a NaN that signals.
  static double of_decimal(const py::object& decimal) {
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Float(decimal.ptr()));
    if (number) return PyFloat_AS_DOUBLE(number.ptr());
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) throw py::error_already_set();
    PyErr_Clear();
    return std::numeric_limits<double>::quiet_NaN();
  }

  // The type of Decimals in C, or None. One in Python, or whatever stands in its place, is left to NumPy.
  static py::object decimal_type() {
    const py::dict modules = py::module_::import("sys").attr("modules");
    py::object found = py::none();
    if (modules.contains("_decimal")) found = py::getattr(modules["_decimal"], "Decimal", found);
    const py::object conversion = py::getattr(found, "__float__", py::none());
    const bool in_c =
        PyType_Check(found.ptr()) && Py_TYPE(conversion.ptr()) == &PyWrapperDescr_Type;
    return in_c ? found : py::none();
  }

  py::ssize_t d_;
  // NumPy has one descriptor for each native type; what has another is none of the plain ones.
  py::dtype doubles_ = py::dtype::of<double>(), floats_ = py::dtype::of<float>();
  py::object scalar_ = doubles_.attr("type"), decimal_ = decimal_type();
  const PyTypeObject* scalar_type_ = reinterpret_cast<PyTypeObject*>(scalar_.ptr());
  const PyTypeObject* decimal_type_ = reinterpret_cast<PyTypeObject*>(decimal_.ptr());
  const PyTypeObject* array_type_ = py::detail::npy_api::get().PyArray_Type_;
};

}  // namespace

static py::list plain_records(const py::list& records, py::array rows) {
  if (rows.ndim() != 2 || rows.shape(0) != py::ssize_t(records.size())) bad_view("rows");
  const std::size_t n = records.size(), d = std::size_t(rows.shape(1));
  double* out = output_view<double>(rows, n * d, "rows");
  const PlainRecords plain(d);
  py::list others;
  PyObject* const* items = n ? &PyList_GET_ITEM(records.ptr(), 0) : nullptr;
  for (std::size_t i = 0; i < n; ++i) {
    plain.ask_for(items + i, py::ssize_t(n - i));
    if (!plain.read(items[i], out + i * d)) others.append(i);
  }
  return others;
}

void bind_records(py::module_& m) {
  m.def("plain_records", &plain_records, py::arg("records"), py::arg("rows"),
        "Write each record of d plain numbers (an array of native floats, or a list or tuple of "
        "Python's numbers, integers up to 64 bits, Decimals, truth values and None) to its row of "
        "`rows` (float64, n x d); returns the places of the others, whose rows hold anything.");
}
