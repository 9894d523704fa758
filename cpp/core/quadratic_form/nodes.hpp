// What the per-target kernel of the quadratic form reads and writes. Plain structs only.
#pragma once
#include <cstddef>

namespace ellipsum {

constexpr std::size_t form_block = 8;     // nodes that one call evaluates
constexpr std::size_t form_moments = 20;  // Taylor moments of a cluster, at most

// Terms of equal, small dof: their factors are multiplied, one logarithm a chunk.
struct FormGroup {
  std::size_t begin, end;  // of SaddleTerms::r
  double half_dof;
  bool shifted = false;  // have they a kappa, too? Then they are among the centered ones.
};

// Many weights c(1 + e_j) near a center c, seen from the saddlepoint: with
// u = 2ct/(1 - 2ct), log(1 - 2 w_j t) = log(1 - 2ct) + log(1 - e_j u).
struct SaddleCluster {
  double r;                             // 2c / (1 - 2c t0)
  double u0;                            // u at t0
  double at_saddle;                     // the first sum below at u0
  double noncentral_at_saddle;          // sum l/2 (1/(1 - 2 w t0) - 1)
  double half_dof;                      // sum k/2
  double half_noncentrality;            // sum l/2
  const double* dof_moments;            // sum k/2 e^p / p, p = 1..form_moments
  const double* noncentrality_moments;  // sum l/2 e^p; null where all are central
  std::size_t degree;                   // moments that are needed
};

// Terms seen from the saddlepoint t0: 1 - 2w(t0 + z) = (1 - 2w t0)(1 - r z).
struct SaddleTerms {
  const double* r;         // 2w / (1 - 2w t0)
  const double* half_dof;  // k/2
  const double* kappa;     // l / (2 (1 - 2w t0))
  std::size_t general;     // so many leading terms are evaluated one by one,
  std::size_t centered;    // and so many of all without the linear part of their kappa's share
  const FormGroup* groups;
  std::size_t group_count;
  const SaddleCluster* clusters;
  std::size_t cluster_count;
};

// t = t0 + bend (sqrt(radius^2 + Y^2) - radius) + iY, Y = width sinh u; the linear and the
// normal part of the exponent are drift z + normal_variance z^2 / 2.
struct FormPath {
  double width, bend, radius;
  double t, drift, normal_variance;
  double second;  // one over the distance from t0 to a second pole; 0: there is none
};

// At each node, exp(K(t) - tq - K(t0) + t0 q) dt/du / i (over 1 + second z), its size without
// the factor of the bend, t0/t, and the real part of the product.
struct FormValues {
  double density_re[form_block], density_im[form_block];
  double ratio_re[form_block], ratio_im[form_block];
  double size[form_block], tail[form_block];
  double z_re[form_block], z_im[form_block];  // of the node, from the saddlepoint
};

// Sums over blocks of nodes that serve a q' near their own: exp(-(q' - q) z) takes them there.
struct FormMoved {
  double tail[form_block], density[form_block];  // one for each place in a block
  double last_tail, last_density;                // size of the last node
};

}  // namespace ellipsum
