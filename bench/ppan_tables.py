"""Tables of ppan_figures.py."""

from __future__ import annotations

from collections.abc import Iterable

from learned_baselines import noise_leakage, proved_mu, shift_leakage
from learned_pictures import Results
from learned_settings import covariances
from ppan_sampling import sampling_lines

IMAGE_RELEASES = ("learned", "plain noise")

AFFINE = """\
`law known`: trained on the covariance (`fit_covariance`). With rows the limit is kept on the rows,
and the law's distortion is off by their sampling, whose standard deviation is beside it
(`distortion_error_`). Three seeds, each with rows of its own; first the worst of all targets. With
the law known nothing is sampled and the descent, but for its start, is deterministic: those rows
are one seed each, not three."""
SAMPLING = """\
100 samples of 8,000 rows in each cell, none of them seen above. The least deviation is the closed
form (2 tr C^2 / n)^(1/2), C the covariance of Y less its estimate: no unbiased way to meet a limit
through n rows has a smaller one (Cramer and Rao). The exact optimum of each sample's covariance is
as far off as what is learned from the same rows, and so is each of the runs above ("exact off").
1.5 % is kept about as often as the normal law of that deviation says, by both."""
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
Leakage under the true law, in brackets what it is over the optimum at the distortion reached there.
Learned from the law, and from one sample of 10,000 or 1,000 (the paper's number); the plug-in is
the exact solver on the sample's frequencies, the paper's conventional approach (pairs that the
sample lacks get the least costly letter; the learned table keeps its start there). Of letters, the
label-only release is Y itself (distortion 0), and randomised response is the release with a proof:
it is the optimum here where Y alone is observed. LEACE, the shift and Gaussian noise want
numbers."""
RECIPE = """\
Numbers have no label to send alone, nor to respond with; LEACE and the shift, at the distortion
reached by networks, by the paper's recipe and in Figure 12, beside the proof of isotropic noise:"""
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
        exact = [f"{abs(r['exact off']):.2%}" for r in same if "exact off" in r]
        number = f"{key[1]:,}" if key[1] else "law known"
        target = f"{key[2]:g}" if whole else f"{len({r['target'] for r in same})} targets"
        cells = [key[0], number, target, f"{excess:.5f}", f"{share:.2%}", f"{off:.2%}"]
        cells.append(max(exact, key=lambda text: float(text[:-1]), default=""))
        cells += [f"{error:.2%}", f"{worst['optimum']:.4f}", str(max(r["seconds"] for r in same))]
        lines.append(cells)
    head = (
        "setting | rows | target | worst excess (nats) | of optimum | distortion off | exact off | "
    )
    return _table(head + "sampling, 1 sd | optimum | CPU s", lines)


def sampling_table(results: dict) -> list[str]:
    """Learned beside exact, on the same samples."""
    head = "setting | target | least deviation | learned, 1 sd | exact, 1 sd | "
    head += "within 1.5 %: normal law | learned | exact | furthest | learned less exact, at most"
    return _table(head, sampling_lines(results))


BESIDE_HEAD = "isotropic noise | proved by that noise: mu | LEACE, part of the way | "
BESIDE_HEAD += "part of the oracle shift"


def beside_cells(setting: str, at: float) -> list[str]:
    """What stands beside a learned release of numbers at this squared error."""
    observe, covariance, k = covariances()[setting]
    whole = noise_leakage(covariance, k, 1e-12)
    cells = [f"{noise_leakage(covariance, k, at):.4f}", f"{proved_mu(covariance, k, at):.1f}"]
    cells.append("all" if setting == "rate-distortion" else f"{whole:.4f}")
    shifted = shift_leakage(covariance, k, at) if observe == "full" else None
    return [*cells, "" if shifted is None else f"{shifted:.4f}"]


def baseline_lines(results: dict) -> list[str]:
    """What stands beside each target of the Gaussian settings, at the same squared error."""
    lines = []
    for r in results.get("affine", []):
        if r["rows"] is None:
            cells = [r["setting"], f"{r['distortion']:.3f}", f"{r['optimum']:.4f}"]
            beside = beside_cells(r["setting"], r["distortion"])
            lines.append([*cells, f"{r['leakage']:.4f}", *beside])
    return _table("setting | distortion | optimum | affine | " + BESIDE_HEAD, lines)


def beside_networks(results: dict) -> list[str]:
    """The same beside networks, the paper's recipe and Figure 12."""
    lines = []
    for name, r in results.get("network", {}).items():
        cells = [name, f"{r['distortion']:.4f}", f"{r['optimum']:.4f}"]
        lines.append([*cells, *beside_cells(name.split(";")[0], r["distortion"])])
    for r in results.get("recipe", {}).values():
        cells = ["the paper's recipe", f"{r['distortion']:.4f}", f"{r['optimum']:.4f}"]
        lines.append([*cells, *beside_cells("scalar, useful", r["distortion"])])
    if "components" in results:
        r = results["components"]
        cells = [f"Figure 12, affine: {r['leakage']:.4f}", f"{r['distortion']:.4f}"]
        beside = beside_cells("vector, useful", r["distortion"])
        lines.append([*cells, f"{r['optimum']:.4f}", *beside])
    return _table("run | distortion | optimum | " + BESIDE_HEAD, lines)


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
    names = ["exact", "10,000 samples", "plug-in, 10,000 samples"]
    names += ["1,000 samples", "plug-in, 1,000 samples"]
    lines = []
    for r in results.get("discrete", []):
        cells = [r["observe"], str(r["target"])]
        cells += [f"{r[n]['leakage']:.4f} ({r[n]['leakage'] - r[n]['optimum']:.5f})" for n in names]
        one = r["exact"]
        lines.append([*cells, f"{one['response']:.4f} ({one['epsilon']:.2f})"])
    head = "observed | target | exact law | 10,000 samples | plug-in, 10,000 | 1,000 samples | "
    return _table(head + "plug-in, 1,000 | randomised response (epsilon)", lines)


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


def write_tables(results: Results) -> str:
    """All tables as Markdown, also to ppan_figures.md beside the results."""
    parts = ["# Privacy networks beside the optimum", "", "`python bench/ppan_figures.py`", ""]
    parts += ["## Table I: the models, and the worst of what was learned on each", ""]
    parts += [*table_lines(results), ""]
    parts += ["## Affine, exact on the true covariance", "", AFFINE, ""]
    parts += [*affine_lines(results, False), "", *affine_lines(results), ""]
    parts += ["## How far off 8,000 rows must be", "", SAMPLING, "", *sampling_table(results), ""]
    parts += ["## Beside them, at the same distortion (nats)", "", BESIDE, ""]
    parts += [*baseline_lines(results), ""]
    parts += ["## Networks, 40,000 new rows (nats)", ""]
    parts += [NETWORKS, ""]
    parts += network_lines(results)
    parts += ["", "## Ten letters (Figure 3)", ""]
    parts += [LETTERS, ""]
    parts += letter_lines(results)
    parts += ["", "## The paper's own recipe", "", *recipe_lines(results), ""]
    parts += ["## Beside networks, the recipe and Figure 12 (nats)", "", RECIPE, ""]
    parts += [*beside_networks(results), ""]
    if "images" in results:
        parts += ["## Digits 8 x 8: hide the digit, keep the pixels (Figures 7 to 9)", ""]
        parts += [*image_lines(results), "", ERASERS, "", *eraser_lines(results)]
    text = "\n".join(parts) + "\n"
    (results.folder / "ppan_figures.md").write_text(text)
    return text
