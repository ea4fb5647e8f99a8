"""The provider for ir_measures, called as ir_measures calls it; `tests/conformance` uses the
package itself."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import pandas as pd
import pytest

import rankdash as rd
from tests.sets import SETS, loaded


class Metric(NamedTuple):
    query_id: str
    measure: str
    value: float


class Evaluator:
    def __init__(self, measures: list[str], qrel_qids: set[str]) -> None:
        self.measures, self.qrel_qids = measures, qrel_qids


class Provider:
    def evaluator(self, measures: list[str], qrels: pd.DataFrame) -> Evaluator:
        return self._evaluator(measures, qrels)


class Converter:
    def __init__(self, rows: pd.DataFrame) -> None:
        self.rows = rows

    def as_pd_dataframe(self) -> pd.DataFrame:
        return self.rows


@pytest.fixture
def registry(monkeypatch) -> Iterator[dict[str, Provider]]:
    """Install the parts of ir_measures that a provider uses."""
    known: dict[str, Provider] = {}

    def register(provider):
        known[provider.NAME] = provider
        return provider

    parts = {
        "ir_measures": {"Metric": Metric},
        "ir_measures.providers": {
            "Provider": Provider, "Evaluator": Evaluator, "register": register,
        },
        "ir_measures.util": {"QrelsConverter": Converter, "RunConverter": Converter},
    }  # fmt: skip
    for name, members in parts.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["ir_measures"].providers = sys.modules["ir_measures.providers"]
    return known


QRELS = pd.DataFrame(
    [("q1", "a", 2), ("q1", "b", 0), ("q2", "c", 1), ("q3", "d", 0)],
    columns=["query_id", "doc_id", "relevance"],
)
RUN = pd.DataFrame(
    [("q1", "b", 2.0), ("q1", "a", 1.0), ("q2", "c", 1.0), ("q3", "d", 1.0)],
    columns=["query_id", "doc_id", "score"],
)


def values(provider: Provider, *measures: str) -> dict[tuple[str, str], float]:
    found = provider.evaluator([*measures], QRELS).iter_calc(RUN)
    return {(each.measure, each.query_id): each.value for each in found}


def test_values_are_those_of_evaluate_by_the_names_of_ir_measures(registry):
    provider = rd.ir_measures_provider()
    assert registry == {"rankdash": provider}
    data = rd.read(
        {q: dict(zip(rows["doc_id"], map(int, rows["relevance"]), strict=True))
         for q, rows in QRELS[QRELS["query_id"] != "q3"].groupby("query_id")},
        {q: dict(zip(rows["doc_id"], rows["score"] + 0.5, strict=True))
         for q, rows in RUN[RUN["query_id"] != "q3"].groupby("query_id")},
    )  # fmt: skip
    expected = rd.evaluate(data, metrics="ndcg@10, mrr").frame()
    names = {"ndcg@10": "nDCG@10", "mrr": "RR"}
    assert values(provider, "nDCG@10", "RR") == {
        (names[row.metric], row.query_id): row.value for row in expected.itertuples()
    }


def test_conventions_and_thresholds_are_used(registry):
    provider = rd.ir_measures_provider(rd.Conventions.trec_eval())
    found = values(provider, "P@1", "P(rel=2)@2")
    assert found["P@1", "q3"] == 0
    assert found["P(rel=2)@2", "q1"] == 0.5
    assert found["P(rel=2)@2", "q2"] == 0


def test_measures_that_rankdash_lacks_are_not_supported(registry):
    provider = rd.ir_measures_provider()
    assert provider.supports("nDCG(dcg='exp-log2')@5")
    assert not provider.supports("infAP")


def test_without_the_package_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(rd.RankdashError, match="pip install ir_measures"):
        rd.ir_measures_provider()


@pytest.mark.thorough
@pytest.mark.parametrize("name", SETS)
def test_the_package_itself_has_the_same_values(name):
    ir_measures = pytest.importorskip("ir_measures", reason="the tool ir_measures is not installed")
    provider = rd.ir_measures_provider(rd.Conventions.trec_eval(9))
    named = "nDCG@10 nDCG P@5 P(rel=2)@5 AP AP@10 AP(rel=2) RR R@10 Success@3 Rprec Bpref"
    measures = [ir_measures.parse_measure(each) for each in named.split()]
    data = loaded(name).dataset
    qrels = data.qrels.rename(columns={"label": "relevance"}).astype({"relevance": int})
    run = data.candidates.frame()[["query_id", "doc_id", "score"]]
    ours = provider.calc_aggregate(measures, qrels, run)
    # RR@10 is by another provider, which orders equal scores in another way.
    theirs = ir_measures.providers.registry["pytrec_eval"].calc_aggregate(measures, qrels, run)
    assert ours == pytest.approx(theirs, abs=1e-9)
