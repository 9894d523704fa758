"""Tables of ppan_figures.py."""

from __future__ import annotations

from collections.abc import Iterable

from learned_baselines import RESULTS, noise_leakage, proved_mu, shift_leakage
from learned_settings import covariances

IMAGE_RELEASES = ("learned", "plain noise")

AFFINE = """\
`law known`: trained on the covariance (`fit_covariance`). With rows the limit is kept on the rows,
and the law's distortion is off by their sampling, whose standard deviation is beside it
(`distortion_error_`). Three seeds, each with rows of its own; first the worst of all targets."""
BESIDE = """\
LEACE erases all of Y here, at a distortion of tr Cov(Y); a part of the way it is an invertible map,
and tells all. The oracle shift needs X at release. The mu is what isotropic noise of this size
proves for rows clipped at the radius that holds 99 % of them. A label-only release and randomised
response want labels: numbers have none."""
NETWORKS = """\
Quadrature of the pair (X, Z), or of each pair (X_i, Z_i) and summed: it sees what is not Gaussian,
and for vectors not what goes across pairs; the held-out network looks there. Asked for: at most
max(3 %, 0.01 nats) over the optimum."""
LETTERS = """\
Of letters, the label-only release is Y itself (distortion 0), and randomised response is the
release with a proof: it is the optimum here where Y alone is observed. LEACE, the shift and
Gaussian noise want numbers."""
ERASERS = """\
Beside them, closed forms and releases with a proof (pixels clipped at the median norm). There is
no optimum: the law is not known. No label is to be kept, so that there is none to send alone."""


def _table(head: str, rows: Iterable[Iterable[str]]) -> list[str]:
    """Lines of a Markdown table; the head with bars between its columns."""
    lines = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def table_lines(results: dict) -> list[str]:
    """Table I, with the row that the paper's text lost, and the largest excess over the optimum.

    The printed law of III-B4 is lost; the text of that section gives it, with W = Y alone.
    """
    joint = "N(0, [[I, R], [R, I]]), R = diag(.47, .24, .85, .07, .66)"
    models = {
        "III-A": ("symmetric pair, m = 10, p = .4", "Pr[Y ≠ Z]", "useful", None),
        "III-A, full": ("the same", "Pr[Y ≠ Z]", "full", None),
        "III-B2": ("X = Y, N(0, diag(.47, .24, .85, .07, .66))", "E‖Y - Z‖²", "X = Y",
                   "rate-distortion"),
        "III-B3": ("N(0, [[1, .85], [.85, 1]])", "E(Y - Z)²", "useful", "scalar, useful"),
        "III-B3, full": ("the same", "E(Y - Z)²", "full", "scalar, full"),
        "III-B4": (joint, "E‖Y - Z‖²", "useful", "vector, useful"),
        "III-B4, full": ("the same", "E‖Y - Z‖²", "full", "vector, full"),
    }  # fmt: skip
    lines = []
    for section, (law, metric, observed, setting) in models.items():
        if setting is None:
            rows = [r["exact"] for r in results.get("discrete", []) if r["observe"] == observed]
        else:
            rows = [r for r in results.get("affine", []) if r["setting"] == setting]
        worst = max((r["leakage"] - r["optimum"] for r in rows), default=float("nan"))
        seen = {"useful": "Y", "full": "(X, Y)"}.get(observed, observed)
        lines.append([section, law, seen, metric, str(len(rows)), f"{worst:.5f}"])
    return _table("section | law of X, Y | W | distortion | points | worst excess (nats)", lines)


def affine_lines(results: dict, whole: bool = True) -> list[str]:
    """Worst of three seeds, by setting, rows and target; or of all targets too."""
    lines, rows = [], results.get("affine", [])

    def key_of(r: dict) -> tuple:
        return (r["setting"], r["rows"], r["target"] if whole else 0)

    for key in dict.fromkeys(key_of(r) for r in rows):
        same = [r for r in rows if key_of(r) == key]
        worst = max(same, key=lambda r: r["leakage"] - r["optimum"])
        excess = worst["leakage"] - worst["optimum"]
        share = max((r["leakage"] - r["optimum"]) / max(r["optimum"], 1e-12) for r in same)
        off = max(abs(r["distortion"] / r["target"] - 1) for r in same)
        error = max(r["sampling"] / r["target"] for r in same)
        number = f"{key[1]:,}" if key[1] else "law known"
        target = f"{key[2]:g}" if whole else f"{len({r['target'] for r in same})} targets"
        cells = [key[0], number, target, f"{excess:.5f}", f"{share:.2%}", f"{off:.2%}"]
        cells += [f"{error:.2%}", f"{worst['optimum']:.4f}", str(max(r["seconds"] for r in same))]
        lines.append(cells)
    head = "setting | rows | target | worst excess (nats) | of optimum | distortion off | "
    return _table(head + "sampling, 1 sd | optimum | CPU s", lines)


def baseline_lines(results: dict) -> list[str]:
    """What stands beside each target of the Gaussian settings, at the same squared error."""
    lines = []
    for r in results.get("affine", []):
        if r["rows"] is not None:
            continue
        observe, covariance, k = covariances()[r["setting"]]
        at = r["distortion"]
        all_of_it = noise_leakage(covariance, k, 1e-12) if r["setting"] != "rate-distortion" else 0
        cells = [r["setting"], f"{at:.3f}", f"{r['optimum']:.4f}", f"{r['leakage']:.4f}"]
        cells += [f"{noise_leakage(covariance, k, at):.4f}", f"{proved_mu(covariance, k, at):.1f}"]
        cells.append(f"{all_of_it:.4f}" if all_of_it else "all")
        shifted = shift_leakage(covariance, k, at) if observe == "full" else None
        cells.append("" if shifted is None else f"{shifted:.4f}")
        lines.append(cells)
    head = "setting | distortion | optimum | affine | isotropic noise | proved by that noise: mu | "
    return _table(head + "LEACE, part of the way | part of the oracle shift", lines)


def eraser_lines(results: dict) -> list[str]:
    """Closed forms and proved releases of the digits' pixels."""
    lines = []
    for name, r in results.get("erasers", {}).items():
        cells = [name, f"{r['squared error']:.2f}", f"{r['linear']:.3f}", f"{r['rbf']:.3f}"]
        lines.append([*cells, f"{r['information']:.2f}"])
    return _table("release | squared error | linear | RBF | information (nats)", lines)


def network_lines(results: dict) -> list[str]:
    """Networks, read by three estimates."""
    lines = []
    for name, r in results.get("network", {}).items():
        _, covariance, k = covariances()[name.split(";")[0]]
        cells = [name] + [f"{r[n]:.4f}" for n in ("distortion", "optimum", "quadrature", "plug-in")]
        cells += [f"{r['held-out network']:.4f} ± {r['se']:.4f}", f"{r['neighbours']:.4f}"]
        noise = noise_leakage(covariance, k, r["distortion"])
        lines.append([*cells, f"{noise:.4f}", str(r["seconds"])])
    head = "run | distortion | optimum | quadrature | plug-in | held-out network | "
    return _table(head + "neighbours | isotropic noise | CPU s", lines)


def letter_lines(results: dict) -> list[str]:
    """Figure 3."""
    lines = []
    for r in results.get("discrete", []):
        cells = [r["observe"], str(r["target"])]
        for name in ("exact", "10,000 samples"):
            cells += [f"{r[name]['leakage']:.4f}", f"{r[name]['leakage'] - r[name]['optimum']:.5f}"]
        one = r["exact"]
        lines.append([*cells, f"{one['response']:.4f} ({one['epsilon']:.2f})"])
    head = "observed | target | exact law | excess | 10,000 samples | excess | "
    return _table(head + "randomised response (epsilon)", lines)


def recipe_lines(results: dict) -> list[str]:
    """The paper's recipe."""
    lines = []
    _, covariance, k = covariances()["scalar, useful"]
    for row in results.get("recipe", {}).values():
        cells = [f"{row['distortion']:.3f}", f"{row['optimum']:.4f}"]
        for name in ("plug-in", "neighbours"):
            cells += [f"{row[name]:.4f}", f"{row[name] / row['optimum'] - 1:+.1%}"]
        lines.append([*cells, f"{noise_leakage(covariance, k, row['distortion']):.4f}"])
    head = "distortion | optimum | plug-in | over the optimum | neighbours | over the optimum | "
    return _table(head + "isotropic noise", lines)


def image_lines(results: dict) -> list[str]:
    """Digits: a fresh RBF attacker and the information that it proves."""
    lines = []
    for key, r in results["images"].items():
        cells = [f"{r[n]['rbf']:.3f} ({r[n]['information']:.2f})" for n in IMAGE_RELEASES]
        share = f"{r['squared error']:.2f} ({r['squared error'] / r['variance']:.0%})"
        weight = key.split(";")[0]
        lines.append([weight, share, *cells, str(r["seconds"])])
    head = "discriminator | squared error (share) | learned: RBF (nats) | "
    return _table(head + "noise, same error: RBF (nats) | CPU s", lines)


def write_tables(results: dict) -> str:
    """All tables as Markdown, also to bench/results/ppan_figures.md."""
    parts = ["# Privacy networks beside the optimum", "", "`python bench/ppan_figures.py`", ""]
    parts += ["## Table I: the models, and the worst of what was learned on each", ""]
    parts += [*table_lines(results), ""]
    parts += ["## Affine, exact on the true covariance", "", AFFINE, ""]
    parts += [*affine_lines(results, False), "", *affine_lines(results), ""]
    parts += ["## Beside them, at the same distortion (nats)", "", BESIDE, ""]
    parts += [*baseline_lines(results), ""]
    parts += ["## Networks, 40,000 new rows (nats)", ""]
    parts += [NETWORKS, ""]
    parts += network_lines(results)
    parts += ["", "## Ten letters (Figure 3): leakage, excess over the optimum there", ""]
    parts += [LETTERS, ""]
    parts += letter_lines(results)
    parts += ["", "## The paper's own recipe", "", *recipe_lines(results), ""]
    if "images" in results:
        parts += ["## Digits 8 x 8: hide the digit, keep the pixels (Figures 7 to 9)", ""]
        parts += [*image_lines(results), "", ERASERS, "", *eraser_lines(results)]
    text = "\n".join(parts) + "\n"
    (RESULTS / "ppan_figures.md").write_text(text)
    return text
