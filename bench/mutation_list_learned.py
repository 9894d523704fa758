"""The mutations of ``mutations.py`` in tradeoffs and learned releases."""

from __future__ import annotations

from mutation import Mutation, P

_MU = "tests/test_tradeoff_filters.py -k filter_mu"
_LOCAL = "tests/test_learned_filter.py -k "

LEARNED = [
    Mutation(
        "filter's mu: the ball's radius in place of its width",
        P + "tradeoff/filters.py",
        "reach, unit = math.frexp(radius)\n    unit += 1",
        "reach, unit = math.frexp(radius)",
        _MU,
    ),
    Mutation(
        "filter's mu: labels move nothing",
        P + "tradeoff/filters.py",
        "return [np.zeros(d)] + [columns[:, i] - columns[:, j] for i, j in pairs]",
        "return [np.zeros(d)]",
        _MU,
    ),
    Mutation(
        "filter's mu: the dual without its second term",
        P + "tradeoff/filters.py",
        "return float(level * reach**2 + spread.sum())",
        "return float(level * reach**2)",
        _MU,
    ),
    Mutation(
        "budget: a trained noise counts twice",
        P + "tradeoff/filters.py",
        "return float(0.5 * (np.vdot(inverse, added) + share @ moved))",
        "return float(np.vdot(inverse, added) + 0.5 * (share @ moved))",
        "tests/test_tradeoff_filters.py -k budget",
    ),
    Mutation(
        "certificate: the slack of one direction is left out",
        P + "tradeoff/maxdet.py",
        "bound = multiplier * problem.tau - slack[slack > 0].sum()",
        "bound = multiplier * problem.tau - slack[slack > 0][1:].sum()",
        "tests/test_tradeoff_gaussian.py -k certificate",
    ),
    Mutation(
        "discrete gap: the mean letter in place of the best",
        P + "tradeoff/alternating.py",
        "((channel * slope).sum(1) - slope.min(1)))",
        "((channel * slope).sum(1) - slope.mean(1)))",
        "tests/test_tradeoff_discrete.py -k worse_channel",
    ),
    Mutation(
        "LEACE: one direction alone",
        P + "tradeoff/erase.py",
        "found, rest = directions[:, :count], directions[:, count:]",
        "found, rest = directions[:, :1], directions[:, 1:]",
        "tests/test_tradeoff_audit.py -k leace",
    ),
    Mutation(
        "LEACE: not in the metric of the rows",
        P + "tradeoff/erase.py",
        "inner = np.hstack([(basis / root) @ rest, null])",
        "inner = np.hstack([basis @ rest, null])",
        "tests/test_tradeoff_audit.py -k leace",
    ),
    Mutation(
        "proved latents: half of the noise",
        P + "learned/local_mechanism.py",
        "noise.rounded_gaussian(integers.size, self.steps,",
        "noise.rounded_gaussian(integers.size, self.steps / 2,",
        _LOCAL + "bits",
    ),
    Mutation(
        "proved latents: mu of the radius before rounding",
        P + "learned/local_mechanism.py",
        "columns, self.clip.row_bound) * UP",
        "columns, self.radius / self.clip.grid) * UP",
        _LOCAL + "further_apart",
    ),
    Mutation(
        "proved latents: the labels' shifts are not in mu",
        P + "learned/local_mechanism.py",
        "columns = self.shifts.T if len(self.shifts) > 1 else None",
        "columns = None",
        _LOCAL + "further_apart",
    ),
    Mutation(
        "proved latents: a seed is no caveat",
        P + "learned/local_mechanism.py",
        "return seed_caveats(seed)",
        "return ()",
        _LOCAL + "mu_proved",
    ),
    Mutation(
        "together: proofs as the largest of them",
        P + "learned/local_mechanism.py",
        "math.hypot(*(g.mu for g in proofs))",
        "max(g.mu for g in proofs)",
        _LOCAL + "together",
    ),
    Mutation(
        "trained inside: no room for the grid's rounding",
        P + "learned/guaranteed_filter.py",
        "(1 - (np.sqrt(k) / 2 + 3) * 2.0**-23)",
        "1.0",
        _LOCAL + "keeps_its_mu",
    ),
    Mutation(
        "affine release: not scaled to its limit",
        P + "learned/affine_training.py",
        "if 0 < room and (priced or room < 1):",
        "if False:",
        "tests/test_learned_affine.py -k far_below",
    ),
    Mutation(
        "held out: the linear reader has seen the rows that judge it",
        P + "learned/held_out.py",
        "tried = [_fitted(xs[fit], zs[fit], ridge)",
        "tried = [_fitted(xs[test], zs[test], ridge)",
        "tests/test_learned_held_out.py -k nothing",
    ),
    Mutation(
        "held out: no row may doubt the reader",
        P + "learned/held_out.py",
        "_DOUBT = 1e-3",
        "_DOUBT = 1e-300",
        "tests/test_learned_held_out.py -k minus_infinity",
    ),
    Mutation(
        "audit: a release shifts by whatever label is attacked",
        P + "tradeoff/attackers.py",
        "told = labels_shifted_by(release, rows, given, private_labels)",
        "told = labels_shifted_by(release, rows, given, None)",
        "tests/test_tradeoff_audit.py -k private",
    ),
    Mutation(
        "eraser: what the rows have in common is released to the bit",
        P + "tradeoff/erase.py",
        "np.rint(together / self._grid) * self._grid",
        "together",
        "tests/test_tradeoff_first_use.py -k follow_from",
    ),
    Mutation(
        "measure: attributes as they are",
        P + "learned/leakage.py",
        "held_out_information(_white(x), _white(z), seed)",
        "held_out_information(x, z, seed)",
        "tests/test_learned_held_out.py -k all_but_follow",
    ),
    Mutation(
        "affine point: the offset costs nothing",
        P + "learned/leakage.py",
        "np.trace(spread) + offset @ offset)",
        "np.trace(spread))",
        "tests/test_learned_network.py -k papers_rows",
    ),
    Mutation(
        "quadrature: x and y as far apart as if nothing tied them",
        "bench/learned_information.py",
        "/ (2 * (1 - rho**2)))",
        "/ 2)",
        "tests/test_learned_network.py -k quadrature",
    ),
    Mutation(
        "quadrature by pairs: the bins' bias stays",
        "bench/learned_information.py",
        "np.log(ratio)).sum()) - bias",
        "np.log(ratio)).sum()) - 0 * bias",
        "tests/test_learned_network.py -k quadrature",
    ),
    Mutation(
        "side by side: the second label's classifier sees the first's classes",
        P + "learned/classifiers.py",
        "torch.gather(scores, 2, labels[:, :, None])",
        "torch.gather(scores, 2, labels[:1].expand(labels.shape)[:, :, None])",
        "tests/test_learned_descent.py -k side_by_side",
    ),
]
