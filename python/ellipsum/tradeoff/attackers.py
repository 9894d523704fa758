"""Attackers trained afresh on what was released: how much of a label it still tells.

The attacker that a release was trained against understates what it tells (Song & Shmatikov 2020).
So the attackers here are new, see several noise draws of each record, and are judged on records
that they have not seen. Needs scikit-learn, an extra.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from .guarantee import EstimatedInformation
from .neighbors import knn_information
from .released import labels_shifted_by, released_draws, sized
from .seeds import short_number_of

__all__ = ["AttackResult", "Audit", "audit"]

Array = NDArray[np.float64]

_KNN_DIMENSIONS = 10  # principal ones: in more, nearest neighbours are not near
_FOLDS = 2  # of the calibration of scores: each trains every attacker once more
_RARE = (
    "each label must be that of two or more of the records that attackers train on: join rare "
    "labels, and cut numbers into classes"
)


@dataclass(frozen=True)
class AttackResult:
    """One attacker on the records held out; standard errors are over records."""

    attacker: str
    accuracy: float
    accuracy_se: float
    information: float
    information_se: float


@dataclass(frozen=True)
class Audit:
    """What fresh attackers learned of a label.

    Parameters
    ----------
    results : tuple of AttackResult
    baseline : float
        Accuracy of always guessing the commonest label of the training records.
    entropy : float, nats
        Of the label, on the records held out.
    knn_information : float or None, nats
        The nearest-neighbour estimate (no bound); None above 10 dimensions.
    n_train, n_test, draws : int
    """

    results: tuple[AttackResult, ...]
    baseline: float
    entropy: float
    knn_information: float | None
    n_train: int
    n_test: int
    draws: int

    @property
    def strongest(self) -> AttackResult:
        """The attacker of the highest accuracy: the one to quote."""
        return max(self.results, key=lambda result: result.accuracy)

    @property
    def guarantee(self) -> EstimatedInformation:
        """The best of the lower bounds, typed: an estimate, never a promise."""
        best = max(self.results, key=lambda result: result.information)
        names = tuple(result.attacker for result in self.results)
        return EstimatedInformation(
            max(0.0, best.information), best.information_se, names, self.n_test
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"guarantee": self.guarantee.to_dict()}

    def __str__(self) -> str:
        lines = ["attacker   accuracy (se)    information (se), nats"]
        for r in self.results:
            lines.append(
                f"{r.attacker:9}  {r.accuracy:.3f} ({r.accuracy_se:.3f})    "
                f"{r.information:+.3f} ({r.information_se:.3f})"
            )
        lines.append(f"constant   {self.baseline:.3f}            0")
        if self.knn_information is not None:
            lines.append(f"nearest-neighbour estimate: {self.knn_information:.3f} nats")
        lines.append(f"{self.n_train} records to train, {self.n_test} held out, {self.draws} draws")
        return "\n".join([*lines, str(self.guarantee)])


def audit(
    release: Any,
    labels: ArrayLike,
    rows: ArrayLike | None = None,
    attackers: Sequence[str] = ("linear", "mlp", "rbf", "knn"),
    *,
    draws: int = 4,
    test_share: float = 0.4,
    test: ArrayLike | None = None,
    private_labels: ArrayLike | None = None,
    seed: Any = 0,
) -> Audit:
    """Train fresh attackers on a release and measure them on records held out.

    **Guarantees.** None of privacy: a better attacker may learn more. Each ``information`` is
    the label's entropy less a held-out log-loss, so that in expectation it is below
    I(label; release) (claim tradeoff-4).

    Parameters
    ----------
    release : array or frame (n, d), or (draws, n, d), already released; or an object with
        ``transform``, or a function, of ``rows`` (and of labels, if its ``uses_label`` is true).
        A ``seed`` is passed where it is accepted.
    labels : array (n,)
        What is attacked.
    rows : array (n, ...), optional
        What to release.
    attackers : sequence of {"linear", "mlp", "rbf", "knn"}
        Logistic regression, a network of two layers of 48, a support vector machine, 10 nearest
        neighbours; each on standardised columns.
    draws : int
        Releases of every record that attackers see, and are tested on.
    test_share : float
        Share of the records held out.
    test : array of int or of bool (n,), optional
        In its place, the records held out, by number or by true: those that the release was not
        trained on either, or those of one user.
    private_labels : array (n,), optional
        What a release with ``uses_label`` is given, if not the labels attacked: needed where
        another label is attacked than the one that it shifts by.
    seed : int, 32 bytes, numpy Generator or None
        Of attackers, of the records held out and of the draws; None for fresh ones.

    Raises
    ------
    ImportError
        Without scikit-learn; the message names the extra.
    ValueError
        Where a label has fewer than two records to train on, or the release would be given labels
        that are not among its ``classes_``; no message quotes a cell.
    """
    _check_sklearn()
    names = [attackers] if isinstance(attackers, str) else list(attackers)
    if not names:
        raise ValueError("attackers must name one attacker or more")
    for name in names:
        _validate.one_of("attackers", name, ("linear", "mlp", "rbf", "knn"))
    given, seed = np.asarray(labels), short_number_of(seed)
    told = labels_shifted_by(release, rows, given, private_labels)
    released = sized(released_draws(release, rows, told, draws, seed))
    if given.shape != released.shape[1:2]:
        raise ValueError(f"labels must have shape ({released.shape[1]},), got {given.shape}")
    classes, which = _validate.classes("labels", given)
    if len(classes) < 2:
        raise ValueError("labels must hold two different values or more")
    share = _validate.open_unit("test_share", test_share)
    train, held = _split(which, share, seed) if test is None else _given(which, test)
    if np.bincount(which[train], minlength=len(classes)).min() < _FOLDS:
        raise ValueError(_RARE)
    entropy = _entropy(which[held])
    results = [
        _attack(name, released, which, (train, held), len(classes), entropy, seed) for name in names
    ]
    common = np.bincount(which[train]).argmax()
    near = knn_information(released[0], given) if released.shape[2] <= _KNN_DIMENSIONS else None
    return Audit(
        tuple(results),
        float((which[held] == common).mean()),
        entropy,
        near,
        len(train),
        len(held),
        len(released),
    )


def _check_sklearn() -> None:
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise ImportError(
            "audit needs scikit-learn: pip install scikit-learn", name="sklearn"
        ) from None


def _split(which: NDArray[Any], share: float, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    from sklearn.model_selection import train_test_split

    count, classes = len(which), int(which.max()) + 1
    if np.bincount(which).min() < _FOLDS:
        raise ValueError(_RARE)
    if min(np.ceil(share * count), np.floor((1 - share) * count)) < classes:
        raise ValueError("test_share must leave a record of each label on both sides, or more rows")
    train, test = train_test_split(
        np.arange(count), test_size=share, random_state=seed, stratify=which
    )
    return train, test


def _given(which: NDArray[Any], test: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    held = np.asarray(test)
    if held.dtype == bool and held.shape == which.shape:
        held = np.flatnonzero(held)
    if held.ndim != 1 or held.dtype.kind not in "iu":
        raise ValueError("test must hold row numbers, or be true where a row is held out")
    held = np.unique(held)
    if len(held) < 2 or held[0] < 0 or held[-1] >= len(which):
        raise ValueError(f"test must hold two row numbers or more, from 0 to {len(which) - 1}")
    train = np.setdiff1d(np.arange(len(which)), held)
    if len(np.unique(which[train])) < len(np.unique(which)):
        raise ValueError("test must leave records of every label to train attackers on")
    return train, held


def _entropy(which: NDArray[Any]) -> float:
    share = np.bincount(which) / len(which)
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())


def _attack(
    name: str,
    released: Array,
    which: NDArray[Any],
    split: tuple[NDArray[Any], NDArray[Any]],
    labels: int,
    entropy: float,
    seed: int,
) -> AttackResult:
    train, test = split
    draws = len(released)
    seen, known = np.concatenate(released[:, train]), np.tile(which[train], draws)
    groups = np.tile(np.arange(len(train)), draws)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an attacker that has not converged is still an attacker
        attacker = _attacker(name, seed, len(seen)).fit(seen, known)
        calibrate = _calibration(name, seen, known, groups, labels, seed)
        guesses = np.array([attacker.predict(draw) for draw in released[:, test]])
        losses = np.array([calibrate(attacker, draw, which[test]) for draw in released[:, test]])
    right, loss = (guesses == which[test]).mean(0), losses.mean(0)
    # entropy - loss as a mean over records: each record brings -log of its label's share
    share = np.bincount(which[test], minlength=labels) / len(test)
    gain = -np.log(share[which[test]]) - loss
    root = np.sqrt(len(test))
    return AttackResult(
        name,
        float(right.mean()),
        float(right.std(ddof=1) / root),
        float(gain.mean()),
        float(gain.std(ddof=1) / root),
    )


def _attacker(name: str, seed: int, records: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler
    from sklearn.svm import SVC

    made: dict[str, Callable[[], Any]] = {
        "linear": lambda: LogisticRegression(max_iter=2000),
        "mlp": lambda: MLPClassifier((48, 48), max_iter=300, alpha=1e-3, random_state=seed),
        "rbf": lambda: SVC(C=10.0),
        "knn": lambda: KNeighborsClassifier(min(10, records)),
    }
    if name == "mlp":  # in single precision: as strong, in two thirds of the time
        return make_pipeline(StandardScaler(), FunctionTransformer(np.float32), made[name]())
    return make_pipeline(StandardScaler(), made[name]())


def _scores(attacker: Any, rows: Array) -> Array:
    if hasattr(attacker, "decision_function"):
        scores = np.asarray(attacker.decision_function(rows), dtype=np.float64)
        return scores[:, None] if scores.ndim == 1 else scores
    return np.log(np.asarray(attacker.predict_proba(rows)) + 1e-2)


def _calibration(
    name: str, seen: Array, known: NDArray[Any], groups: NDArray[Any], labels: int, seed: int
) -> Callable[[Any, Array, NDArray[Any]], Array]:
    """From scores to log-losses, by a logistic regression on scores of training records that the
    scoring attacker has not seen: raw scores are over-confident, which would hide information."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    folds = list(GroupKFold(_FOLDS).split(seen, known, groups))
    if any(len(np.unique(known[fit])) < labels for fit, _ in folds):  # a rare label
        folds = list(StratifiedGroupKFold(_FOLDS).split(seen, known, groups))
    scores: list[Array] = []
    truth: list[NDArray[Any]] = []
    for fit, rest in folds:
        attacker = _attacker(name, seed, len(fit)).fit(seen[fit], known[fit])
        scores.append(_scores(attacker, seen[rest]))
        truth.append(known[rest])
    calibrated = LogisticRegression(max_iter=2000).fit(
        np.concatenate(scores), np.concatenate(truth)
    )

    def losses(attacker: Any, rows: Array, wanted: NDArray[Any]) -> Array:
        chance = calibrated.predict_proba(_scores(attacker, rows))
        lost: Array = -np.log(np.maximum(chance[np.arange(len(rows)), wanted], 1e-12))
        return lost

    return losses
