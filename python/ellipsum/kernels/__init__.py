"""What touches every number of the data or of the noise: C++, and its Numba twins."""
