#pragma once
#include <pybind11/pybind11.h>

#include <memory>

#include "clip/arrangement.hpp"
#include "dispatch.hpp"

namespace ellipsum {
struct QuadraticForm;
}

// The kernels in use: set once, by Python's _backend.py, before any other call.
const ellipsum::Kernels& kernels();
// The same with what is known of the speed of the clip kernels.
std::shared_ptr<const ellipsum::Choice> clip_choice();

void bind_dispatch(pybind11::module_& m);
void bind_clip(pybind11::module_& m);
void bind_records(pybind11::module_& m);
void bind_exact_sum(pybind11::module_& m);
void bind_users(pybind11::module_& m);
void bind_keys(pybind11::module_& m);
void bind_noise(pybind11::module_& m);
void bind_quadratic_form(pybind11::module_& m);
void bind_gaussian_pair(pybind11::module_& m);
void bind_form_hockey_stick(pybind11::class_<ellipsum::QuadraticForm>& form);
