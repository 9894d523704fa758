"""The generalized chi-square distribution, right in both tails."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from .diagonal import diagonal
from .form_array import FormArray
from .gradients import Gradient, tail_gradient
from .moments import Moments
from .normal_form import NormalForm, normal_form
from .parameters import Value
from .tails import QuadraticFormResult, QuadraticFormWarning, check_errors

if TYPE_CHECKING:
    from .fitting import FormFit

__all__ = ["QuadraticForm", "QuadraticFormResult", "QuadraticFormWarning"]

_EXCESS, _ROOT, _SHORTFALL = 1, 2, 3  # moments of the kernel


class QuadraticForm(Moments):
    r"""The distribution of :math:`Q = \sum_j w_j \chi'^2(k_j, \lambda_j) + s Z + m`.

    Parameters
    ----------
    weights : array_like, shape (d,)
        Weights w of any sign; zeros are dropped; may be empty.
    dof : float or array_like, shape (d,)
        Degrees of freedom k, positive; 0 where a noncentrality makes a Poisson-mixed term.
    noncentrality : float or array_like, shape (d,)
        Noncentralities: the squared means, summed over the degrees of freedom.
    normal_sd, offset : float
        Standard deviation s of the normal term, and the constant m.
    threads : int, optional
        How many share the work on many q or probabilities at once: ``ELLIPSUM_THREADS``, or
        else one. The results are the same bits for any number.

    Raises
    ------
    TypeError, ValueError
        A parameter is not finite, negative where it must not be, or of the wrong length.

    Source: Rice 1980; Helstrom 1996 (``docs/quadratic_forms.md``).
    """

    def __reduce__(self) -> tuple[type[QuadraticForm], tuple[Any, ...]]:
        parameters = (self._weights, self._dof, self._noncentrality)
        return QuadraticForm, (*parameters, self._normal_sd, self._offset)

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        mean: ArrayLike,
        cov: ArrayLike,
        linear: ArrayLike | None = None,
        constant: float = 0,
        *,
        threads: int | None = None,
    ) -> QuadraticForm:
        r"""The distribution of :math:`x^T A x + b^T x + c` for x ~ N(mean, cov).

        ``cov`` may be singular; only the symmetric part of ``matrix`` counts. Eigenvalues of
        the quadratic part below 1e-13 of the largest are rounding, and count as zero.

        Parameters
        ----------
        matrix, cov : array_like, shape (n, n)
            A, and the covariance of x.
        mean, linear : array_like, shape (n,)
            The mean of x, and b (0 if left out).
        constant : float
            c.

        Returns
        -------
        QuadraticForm

        Raises
        ------
        ValueError
            A shape does not fit, or ``cov`` is not positive semidefinite.
        """
        return cls(**diagonal(matrix, mean, cov, linear, constant), threads=threads)

    @classmethod
    def broadcast(
        cls,
        weights: ArrayLike,
        dof: ArrayLike = 1,
        noncentrality: ArrayLike = 0,
        normal_sd: ArrayLike = 0,
        offset: ArrayLike = 0,
    ) -> FormArray:
        """Return forms of arrays of parameters, with methods that broadcast over them.

        Parameters
        ----------
        weights, dof, noncentrality : array_like, shapes that broadcast to (..., d)
        normal_sd, offset : array_like, shapes that broadcast to (...)

        Returns
        -------
        FormArray
        """
        return FormArray.broadcast(cls, weights, dof, noncentrality, normal_sd, offset)

    @classmethod
    def fit(
        cls,
        sample: ArrayLike,
        dof: ArrayLike,
        *,
        noncentrality: ArrayLike = 0,
        signs: ArrayLike = 1,
        normal_sd: float | None = 0,
        offset: float | None = 0,
    ) -> FormFit:
        """Weights of the highest likelihood for independent draws of Q, the dof being known.

        Several maxima are possible, which sample and dof tell apart weakly: the best of three
        climbs. Weights of the same dof, noncentrality and sign come in descending order of size.

        **Guarantees.** None of privacy: the fit tells of its sample. Standard errors are those of
        the likelihood's curvature, for many draws and a maximum inside.

        Parameters
        ----------
        sample : array_like, shape (n,), in the unit of Q
        dof : array_like, shape (d,), positive; says how many weights there are
        noncentrality : float or array_like, shape (d,)
        signs : 1, -1, or array_like of these, shape (d,)
            The signs of the weights.
        normal_sd, offset : float, or None to fit them too

        Returns
        -------
        FormFit: ``form``, standard errors of what was fitted (infinite where the sample does not
        tell), ``log_likelihood``

        Raises
        ------
        ValueError
            The likelihood has no regular maximum (an offset beside dof below 2), or the sample
            is no sample of such a form.

        Source: Berndt, Hall, Hall & Hausman 1974, for the errors.
        """
        from .fitting import fit_form, model_of

        return fit_form(model_of(cls, sample, dof, noncentrality, signs, normal_sd, offset))

    def frozen(self) -> Any:
        """This distribution as a frozen ``scipy.stats`` one, for ``kstest``, plots and fits.

        Returns
        -------
        scipy.stats frozen distribution, ``loc`` 0 and ``scale`` 1
        """
        from .frozen import freeze

        return freeze(self)

    def distribution(self) -> Any:
        """This distribution as one of SciPy's newer infrastructure, for its transformations.

        Returns
        -------
        scipy.stats distribution; without parameters, SciPy's being numbers: ``form`` has them

        Raises
        ------
        ImportError
            SciPy is older than 1.15.
        """
        from .frozen import newer

        return newer(self)

    def contour(self, q: float) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        r"""Nodes and weights of the integral that gives the density at q.

        A functional :math:`\frac{1}{2\pi i}\int G(t)e^{K(t)-tq}dt` is the sum of
        Re(weight G(t)); the density is that of G = 1. Near q they serve a q' as well, with the
        factor exp(-(q' - q)t).

        Parameters
        ----------
        q : float, in the unit of Q, inside the support

        Returns
        -------
        t : complex array (n,), in the inverse of Q's unit
        weight : complex array (n,), per unit of Q

        Raises
        ------
        ValueError
            At the support's end and beyond, where there is no saddlepoint.
        """
        low, high = self.support()
        if not low < q < high:
            raise ValueError(f"q must lie inside the support ({low:g}, {high:g}), got {q}")
        return self._table.contour(q - self._offset)

    def isf_gradient(self, p: float) -> NDArray[np.float64]:
        r"""Derivative of ``isf(p)`` with respect to every weight, shape (d,).

        :math:`\partial q/\partial w_j = (k_j f_{+2}(q) + \lambda_j f_{+4}(q))/f(q)`, where
        :math:`f_{+n}` is the density with n more degrees of freedom at weight j: one pass
        over the contour of the density, since :math:`\partial K/\partial w` multiplies it.

        Parameters
        ----------
        p : float, a probability in (0, 1)

        Returns
        -------
        array (d,), in units of Q per unit of weight

        Raises
        ------
        ValueError
            p is not in (0, 1).
        """
        gradient = self.sf_gradient(float(self.isf(_validate.open_unit("p", p))))
        return gradient.weights / gradient.offset

    def sf_gradient(self, q: float) -> Gradient:
        """Derivatives of ``sf(q)`` in every parameter and in q, by one pass over the contour.

        Relatively right in the tails, as ``sf`` itself, where nothing cancels in the derivative.
        Over the density (``offset``) they are those of ``isf``.

        Parameters
        ----------
        q : float, in the unit of Q

        Returns
        -------
        Gradient, with ``weights``, ``dof``, ``noncentrality`` (arrays (d,)), ``normal_sd``,
        ``offset`` and ``q``

        Raises
        ------
        ValueError
            There is no density at q: a point mass, or where it is infinite.
        """
        number = _validate.finite("q", q)
        if not math.isfinite(self._table.tail(number - self._offset)[1]):
            low, high = self.support()
            if low < high and not low <= number <= high:  # outside, nothing changes
                none = np.zeros(self._weights.size)
                return Gradient(none, none.copy(), none.copy(), 0.0, 0.0, 0.0)
            raise ValueError("q must lie where the distribution has a finite density")
        known = (self._weights, self._dof, self._noncentrality, self._normal_sd)
        return tail_gradient(*known, self.contour(number))

    def cdf_gradient(self, q: float) -> Gradient:
        """Derivatives of ``cdf(q)``: :meth:`sf_gradient` with the other sign."""
        return self.sf_gradient(q).negative()

    def to_matrix(self) -> NormalForm:
        """Return A, b and c of the same law as x^T A x + b^T x + c of x ~ N(0, I).

        The inverse of :meth:`from_matrix` with ``mean`` 0 and ``cov`` the identity. A has a
        coordinate for each degree of freedom, and one for a normal term.

        Returns
        -------
        NormalForm: ``matrix`` (n, n), ``linear`` (n,), ``constant``

        Raises
        ------
        ValueError
            Degrees of freedom are not whole numbers from 1.
        """
        known = (self._weights, self._dof, self._noncentrality, self._normal_sd)
        return normal_form(*known, self._offset)

    def partial_mean(self, q: float) -> float:
        """E[Q; Q > q], the part of the mean that lies above q.

        Parameters
        ----------
        q : float, in the unit of Q

        Returns
        -------
        float, in the unit of Q

        Raises
        ------
        ValueError
            q is not finite.
        """
        q = _validate.finite("q", q)
        if self._upper_side(q):
            return q * float(self.sf(q)) + self._moment(q, True, _EXCESS)
        return self.mean() - (q * float(self.cdf(q)) - self._moment(q, False, _EXCESS))

    def partial_root_mean(self, q: float) -> float:
        """E[sqrt(Q); Q > q].

        Parameters
        ----------
        q : float, 0 or more, in the unit of Q

        Returns
        -------
        float, in the square root of Q's unit

        Raises
        ------
        ValueError
            q is negative or not finite, or the distribution has an offset.
        """
        return self._moment(self._radius("q", q), True, _ROOT)

    def clip_loss(self, radius: float) -> float:
        r"""E[(1 - C/sqrt(Q))^2 Q; Q > C^2]: mean squared length that clipping to C takes away.

        Parameters
        ----------
        radius : float, C >= 0, in the square root of Q's unit

        Returns
        -------
        float, in the unit of Q

        Raises
        ------
        ValueError
            The radius is negative or not finite, or the distribution has an offset.
        """
        return self._moment(self._radius("radius", radius) ** 2, True, _SHORTFALL)

    def hockey_stick(self, epsilon: ArrayLike) -> Value:
        r"""E (1 - exp(epsilon - Q))+, of any shape.

        Of a privacy loss this is delta(epsilon), by one integral of a positive kernel,

        .. math:: \frac{1}{2\pi i}\int e^{K(t) - t\varepsilon}\frac{dt}{t(1+t)}, \quad \Re t > 0,

        relatively right however small it is, as far as Q's parameters are; the loss of two
        Gaussians has more digits in :class:`~ellipsum.records.GaussianPair`.
        """
        points = np.asarray(epsilon, dtype=np.float64)
        flat = np.ascontiguousarray(points.ravel() - self._offset)
        out = np.empty((flat.size, 4))
        self._table.hockey_sticks(flat, out, self._threads)
        check_errors(out[:, 2])
        return np.exp(out[:, 0]).reshape(points.shape)[()]

    def _radius(self, name: str, value: float) -> float:
        number = _validate.finite(name, value)
        if number < 0 or self._offset != 0:
            raise ValueError(f"{name} must not be negative, and the distribution have no offset")
        return number

    def _upper_side(self, q: float) -> bool:
        return bool(self._table.tail(q - self._offset)[4])

    def _moment(self, q: float, upper: bool, which: int) -> float:
        log_value, error, _ = self._table.moment(q - self._offset, upper, which)
        check_errors(np.array([error]))
        return math.exp(log_value)
