"""`evaluate`: the numbers of the referee under the names of other tools, on data of any form."""

import math
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from tests.sets import SAMPLE

TREC = {
    "ndcg_cut.10": "ndcg_cut_10", "ndcg_cut.20": "ndcg_cut_20", "P.5": "P_5", "map": "map",
    "recall.100": "recall_100", "recip_rank": "recip_rank", "success.1": "success_1",
    "Rprec": "Rprec",
}  # fmt: skip
IR_MEASURES = {
    "P(rel=2)@5": "P_5", "P(rel=2)@10": "P_10", "AP(rel=2)": "map", "RR(rel=2)": "recip_rank",
    "nDCG@10": "ndcg_cut_10", "R@100": "recall_100",
}  # fmt: skip


def refereed(qrels: Path, run: Path, names: set[str], level: int = 1) -> dict[str, dict]:
    """pytrec_eval's values of the queries in both files."""
    labels: dict[str, dict[str, int]] = {}
    for query, *_, doc, label in map(str.split, qrels.read_text("utf-8").splitlines()):
        if label != "score":
            labels.setdefault(query, {})[doc] = int(label)
    scores: dict[str, dict[str, float]] = {}
    for query, _, doc, _, score, _ in map(str.split, run.read_text("utf-8").splitlines()):
        scores.setdefault(query, {})[doc] = float(score)
    return pytrec_eval.RelevanceEvaluator(labels, names, relevance_level=level).evaluate(scores)


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Path]:
    """Labels below 0, tied scores, queries without a ranking and without labels."""
    rng = np.random.default_rng(1)
    qrels, ranking = tmp_path / "made.qrels", tmp_path / "made.trec"
    labels = (f"{q} 0 d{d} {rng.integers(-1, 4)}\n"
              for q in range(12) for d in rng.permutation(40)[:15])  # fmt: skip
    qrels.write_text("".join(labels))
    rows = (f"{q} Q0 d{d} 1 {rng.integers(0, 6) / 3:.6f} made\n"
            for q in range(3, 15) for d in rng.permutation(60)[:30])  # fmt: skip
    ranking.write_text("".join(rows))
    return qrels, ranking


@pytest.fixture
def sampled() -> tuple[Path, Path]:
    return SAMPLE / "qrels.tsv", SAMPLE / "initial.trec"


@pytest.mark.parametrize(("names", "level"), [(TREC, 1), (IR_MEASURES, 2)])
@pytest.mark.parametrize("data", ["made", "sampled"])
def test_the_values_are_those_of_trec_eval_under_the_names_of_its_users(
    run, request, data, names, level
):
    qrels, ranking = request.getfixturevalue(data)
    done = run(
        "evaluate", "-q", "-m", ",".join(names), "--conventions", "trec_eval9", "--json",
        qrels, ranking,
    )  # fmt: skip
    (found,) = done.json["systems"].values()
    expected = refereed(qrels, ranking, set(names.values()), level)
    assert found["per_query"].keys() == expected.keys()
    for query, values in expected.items():
        wanted = {typed: values[name] for typed, name in names.items()}
        assert found["per_query"][query] == pytest.approx(wanted, abs=1e-9), query
    for typed, name in names.items():
        mean = math.fsum(values[name] for values in expected.values()) / len(expected)
        assert found["mean"][typed] == pytest.approx(mean, abs=1e-9)


def test_several_cutoffs_of_one_metric_are_several_metrics(run, sampled):
    lines = run("evaluate", "-q", "-m", "ndcg_cut.10,20", *sampled).out.splitlines()
    assert lines[0].split() == ["system", "ndcg_cut.10", "ndcg_cut.20"]
    assert sum(line.split()[:1] == ["initial"] for line in lines) == 1 + 168


def test_the_mean_is_that_of_the_values_shown(run, sampled):
    """Where queries have no value."""
    done = run(
        "evaluate", *sampled, "-m", "ndcg@10,judged@10,recall@3", "--threshold", "3", "--json"
    )
    system = done.json["systems"]["initial"]
    for spec, mean in system["mean"].items():
        values = [each[spec] for each in system["per_query"].values() if spec in each]
        assert mean == pytest.approx(math.fsum(values) / len(values), abs=1e-12)
