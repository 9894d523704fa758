"""The loaders of Koehler's two data sets, on made-up lines, and the experiment's printed beta."""

from __future__ import annotations

import numpy as np
import pytest

from ellipsum.records import Bottleneck, RateDistortion
from ellipsum.records import printed_bounds as printed
from koehler_data import DRUGS, LEGAL, drugs, wisconsin
from koehler_models import covariances


def test_lines_with_a_missing_grade_are_left_out_and_the_number_is_no_column(tmp_path):
    path = tmp_path / "breast-cancer-wisconsin.data"
    path.write_text(
        "1000025,5,1,1,1,2,1,3,1,1,2\n1057013,8,4,5,1,2,?,7,3,1,4\n1017122,8,10,10,8,7,10,9,7,1,4\n"
    )
    data = wisconsin(path)
    assert data.rows.tolist() == [[5, 1, 1, 1, 2, 1, 3, 1, 1], [8, 10, 10, 8, 7, 10, 9, 7, 1]]
    assert data.labels.tolist() == [0, 1]


def _line(number, grades):
    scores = [f"{number + i / 100:.5f}" for i in range(12)]
    return ",".join([str(number), *scores, *(f"CL{grades.get(name, 0)}" for name in DRUGS)])


def test_the_drug_file_is_split_into_scores_legal_drugs_and_a_label(tmp_path):
    people = [
        {"alcohol": 5, "chocolate": 6, "semer": 6},  # a legal drug and one that does not exist
        {"caffeine": 6, "heroin": 1},
        {"nicotine": 4, "cannabis": 3, "lsd": 3},
        {"vsa": 6, "coke": 6},
    ]
    path = tmp_path / "drug_consumption.data"
    path.write_text("\n".join(_line(i + 1, p) for i, p in enumerate(people)) + "\n")
    data = drugs(path)
    assert data.rows.shape == (4, 12) and data.rows[1, 3] == 2.03  # without the row number
    assert LEGAL == ("alcohol", "caffeine", "chocolate", "nicotine")
    assert data.auxiliary.tolist() == [[5, 0, 6, 0], [0, 6, 0, 0], [0, 0, 0, 4], [0, 0, 0, 0]]
    assert data.labels.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("epsilon", [0.5, 5.0, 50.0])
def test_the_printed_beta_is_the_largest_allowed_and_costs_more_than_it_claims(epsilon):
    pytest.importorskip("sklearn")
    from koehler_accuracy import DELTA, claimed_beta

    x, cross, y = covariances(3)
    for model in (RateDistortion(x), Bottleneck(x, cross, y)):
        beta = claimed_beta(model, 3.0, epsilon)

        def claim(at, model=model):
            return printed.theorem_5_4_1_epsilon(model.channel(at), 3.0, DELTA)

        assert claim(beta) <= epsilon * (1 + 1e-9)
        above = beta + np.geomspace(1e-2, 10, 50) * (beta - model.critical[0])
        assert min(claim(at) for at in above) > epsilon
        assert model.epsilon(beta=beta, radius=3.0, delta=DELTA) > 1.5 * epsilon
