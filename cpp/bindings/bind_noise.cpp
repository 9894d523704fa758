#include <pybind11/numpy.h>

#include <algorithm>
#include <vector>

#include "bindings.hpp"
#include "noise/noise.hpp"
#include "numpy_view.hpp"

namespace py = pybind11;

namespace {

const unsigned char* key_view(const py::buffer_info& key) {
  if (key.size * key.itemsize != 32) bad_view("key must have 32 bytes");
  return static_cast<const unsigned char*>(key.ptr);
}

py::array_t<std::int64_t> indices(const std::vector<std::uint64_t>& undecided) {
  py::array_t<std::int64_t> out(py::ssize_t(undecided.size()));
  std::copy(undecided.begin(), undecided.end(), out.mutable_data());
  return out;
}

ellipsum::NoiseRequest request(py::array& out, const py::array& sigma, std::uint64_t start) {
  if (sigma.size() == 0) bad_view("sigma must not be empty");
  const std::size_t n = std::size_t(out.size()), d = std::size_t(sigma.size());
  return {start, input_view<double>(sigma, d, "sigma"), d, output_view<std::int64_t>(out, n, "out"),
          n};
}

void keystream(py::array out, const py::buffer& key, std::uint64_t nonce, std::uint64_t start) {
  const std::size_t n = std::size_t(out.size());
  std::uint64_t* words = output_view<std::uint64_t>(out, n, "out");
  const py::buffer_info info = key.request();
  const ellipsum::NoiseKey copy(key_view(info));
  py::gil_scoped_release nogil;
  ellipsum::fill_keystream(kernels(), copy, nonce, start, words, n);
}

py::array rounded_gaussian(py::array out, const py::array& sigma, const py::buffer& key,
                           std::uint64_t start, std::size_t threads) {
  const ellipsum::NoiseRequest r = request(out, sigma, start);
  const py::buffer_info info = key.request();
  const ellipsum::NoiseKey copy(key_view(info));
  std::vector<std::uint64_t> undecided;
  {
    py::gil_scoped_release nogil;
    undecided = ellipsum::fill_gaussian(kernels(), copy, r, threads);
  }
  return indices(undecided);
}

py::array rounded_gaussian_of_words(py::array out, const py::array& sigma, const py::array& first,
                                    const py::array& second) {
  const ellipsum::NoiseRequest r = request(out, sigma, 0);
  const auto* w0 = input_view<std::uint64_t>(first, r.n, "first");
  const auto* w1 = second.size() ? input_view<std::uint64_t>(second, r.n, "second") : nullptr;
  std::vector<std::uint64_t> undecided;
  {
    py::gil_scoped_release nogil;
    undecided = ellipsum::gaussian_of_words(kernels(), w0, w1, r);
  }
  return indices(undecided);
}

}  // namespace

void bind_noise(py::module_& m) {
  m.def("keystream", &keystream, py::arg("out"), py::arg("key"), py::arg("nonce"), py::arg("start"),
        "Fill `out` (uint64) with words start, start + 1, ... of ChaCha20.");
  m.def("rounded_gaussian", &rounded_gaussian, py::arg("out"), py::arg("sigma"), py::arg("key"),
        py::arg("start"), py::arg("threads"),
        "Fill `out` (int64), sigma repeating; returns the indices left for the exact resolver.");
  m.def("rounded_gaussian_of_words", &rounded_gaussian_of_words, py::arg("out"), py::arg("sigma"),
        py::arg("first"), py::arg("second"),
        "The same from given words of nonces 0 and 1; without the latter, the fast path alone.");
}
