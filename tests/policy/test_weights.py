"""Tuned fusion weights: folds, the values of the variants, and gains that are held out."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some

from rankdash.app.command import main
from rankdash.core.base.errors import DataError, SettingError
from rankdash.core.base.i18n import signed
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions
from rankdash.core.rerankers import create, get
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.runs.combining import CombinedRun, Tuned, fuse, tuned
from rankdash.core.runs.runner import rerank
from rankdash.core.statistics.inference import intervals
from rankdash.core.study.judged import verdicts
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.overview.caveats import caveats
from rankdash.features.policy import weights as weights_module
from rankdash.features.policy.weights import (
    FEWEST,
    FOLDS,
    REPEATS,
    check_folds,
    folds,
    near_duplicates,
    variants,
    weights,
)
from tests.sets import SAMPLE, SETS, loaded
from tests.study.builders import LETTERS, changed, data_of, study_on

GROUPS = some.lists(some.integers(0, 30), min_size=1, max_size=80).map(np.array)


# Folds.


@given(GROUPS, some.integers(0, 2**63 - 1), some.integers(0, 50))
def test_no_group_is_in_two_folds(groups, seed, repeat):
    fold = folds(groups, seed, repeat)
    check_folds(fold, groups)
    assert fold.min() >= 0 and fold.max() < FOLDS
    assert fold.tolist() == folds(groups, seed, repeat).tolist()
    largest = np.bincount(groups).max()
    sizes = np.bincount(fold, minlength=FOLDS)
    assert sizes.max() <= len(groups) / FOLDS + largest, "of about equal sizes"


@given(GROUPS.filter(lambda groups: len(groups) > len(set(groups))), some.data())
def test_a_query_in_two_folds_is_refused(groups, data):
    fold = folds(groups, 1)
    _, first, counts = np.unique(groups, return_index=True, return_counts=True)
    leak = data.draw(some.sampled_from(first[counts > 1].tolist()))
    fold[leak] = (fold[leak] + 1) % FOLDS
    with pytest.raises(DataError):
        check_folds(fold, groups)


def test_a_planted_leak_fails(monkeypatch):
    """The same query twice: a split that ignores this is refused, not measured."""
    study = a_study(texts=["one two three"] * 3)
    assert weights(study, study.chosen).splits.shape == (REPEATS,)

    def leaking(groups, seed, repeat=0):
        return folds(np.arange(len(groups)), seed, repeat)

    monkeypatch.setattr(weights_module, "folds", leaking)
    with pytest.raises(DataError):
        weights(a_study(texts=["one two three"] * 3), study.chosen)


def test_near_duplicates():
    texts = [
        "How do I reset my password?",
        "how do I  reset my PASSWORD",
        "please how do I reset my password",
        "How do I delete my account?",
        "怎样重置登录密码",
        "怎样重置登录密码？",
        "怎样注销账号",
        "?!",
        "",
        "?!",
    ]
    groups = near_duplicates(texts).tolist()
    same = [{0, 1, 2}, {3}, {4, 5}, {6}, {7, 9}, {8}]
    assert [
        {at for at, each in enumerate(groups) if each == groups[min(one)]} for one in same
    ] == same
    assert near_duplicates([]).tolist() == []


@given(some.lists(some.sets(some.sampled_from("abcdefgh"), max_size=8), max_size=25))
def test_near_duplicates_are_all_found(sets):
    groups = near_duplicates([" ".join(sorted(each)) for each in sets])
    for one, mine in enumerate(sets):
        for other, others in enumerate(sets[:one]):
            if mine | others and len(mine & others) >= 0.8 * len(mine | others):
                assert groups[one] == groups[other]


# The values of the variants.


def test_the_number_of_variants():
    assert [len(variants(systems)) for systems in (2, 3, 4)] == [65, 136, 221]
    for systems in (2, 3, 4):
        found = variants(systems)
        assert len(set(found)) == len(found)
        assert (found[0].method, found[0].k, set(found[0].weights)) == ("rrf", 60, {1 / systems})
        assert [each.fused for each in found[1 : 1 + systems]] == [(at,) for at in range(systems)]
        assert all(sum(each.weights) == pytest.approx(1) for each in found)
    for systems in (1, 5):
        with pytest.raises(SettingError):
            variants(systems)


def a_study(systems=2, queries=FEWEST + 4, texts=None, seed=0, **fields):
    """Return a study of random lists of letters with many equal scores, some of them incomplete and
    some queries missing."""
    rng = np.random.default_rng(seed)
    ids = [f"q{at}" for at in range(queries)]

    def ranking(lost):
        rows = [
            (query, doc, float(rng.integers(0, 4)))
            for query in ids
            if query not in lost
            for doc in rng.permutation(list(LETTERS))[: rng.integers(3, 9)]
        ]
        return Ranking.from_columns(*zip(*rows, strict=True))

    labels = {query: {doc: float(rng.integers(0, 3)) for doc in LETTERS[:6]} for query in ids}
    data = data_of(ranking(()), labels)
    names = [*(texts or ()), *(f"unique{at} text{at}" for at in range(queries))][:queries]
    data = changed(data, queries=data.queries.assign(text=names))
    runs = [
        run_from_ranking(f"run {at}", data.id, ranking(ids[at : at + 1]), f"{at}.trec")
        for at in range(1, systems)
    ]
    return study_on(data, *runs, **fields)


def parts_of(study):
    return [
        CombinedRun(study.name(each), study.ranking(each), study.run(each)) for each in study.chosen
    ]


@pytest.mark.parametrize(
    ("systems", "fields"),
    [
        (2, {}),
        (2, {"conventions": Conventions(ties="trec", score_precision="float32")}),
        (2, {"metric": "map", "cutoff": None, "conventions": Conventions(judged_only=True)}),
        (3, {"metric": "mrr", "conventions": Conventions.trec_eval(9)}),
        (4, {"metric": "bpref", "cutoff": None}),
    ],
)
def test_values_are_those_of_the_stored_runs(systems, fields):
    study = a_study(systems, **fields)
    found = weights(study, study.chosen)
    assert len(found.query_ids) == FEWEST + 4 - (systems - 1), "queries that all have"
    parts = [
        CombinedRun(study.name(each), study.ranking(each), study.run(each)) for each in study.chosen
    ]
    for at, variant in enumerate(found.variants):
        if variant.fusion is None:
            evaluation = study.evaluate(study.chosen[variant.fused[0]], (study.spec,))
        else:
            fused = [parts[place] for place in variant.fused]
            run = fuse(study.dataset, fused, variant.fusion, "fused")
            own = study_on(study.dataset, run, **fields)
            evaluation = own.evaluate(run.id, (own.spec,))
        by_query = dict(zip(evaluation.query_ids, evaluation.values[:, 0], strict=True))
        assert found.values[:, at].tolist() == [by_query[query] for query in found.query_ids]


def test_too_few_queries_and_metrics_of_labels_are_refused():
    with pytest.raises(DataError, match="Too few"):
        weights(study := a_study(queries=FEWEST - 1), study.chosen)
    with pytest.raises(SettingError):
        weights(study := a_study(metric="judged"), study.chosen)
    with pytest.raises(SettingError):
        weights(study, study.chosen[:1])


def test_long_lists_are_tuned_on_a_sample(monkeypatch):
    study = a_study(queries=200)
    monkeypatch.setattr(weights_module, "MOST_ROWS", 1100)
    found = weights(study, study.chosen)
    assert found.sampled == 199 > len(found.query_ids) > 50


# Gains.

# Set → best single system, equal RRF, best in-sample, gain in-sample and held out over equal RRF,
# held out over the best single system (guide: policy.md).
GUIDE = {
    "medquad": (0.459, 0.468, 0.485, 0.017, -0.006, 0.003),
    "cmrc_zh": (0.789, 0.669, 0.802, 0.132, 0.126, 0.007),
    SAMPLE.name: (0.741, 0.730, 0.768, 0.038, 0.031, 0.021),
}


def with_minilm(name):
    """Return a set and MiniLM's ranking of its first stage: from its file, or by the packaged
    model."""
    if name not in SETS:
        pytest.skip("the labelled sets are not beside the project")
    found = loaded(name)
    if name != SAMPLE.name:
        ranked = found.rankings["rerank_minilm"]
        ranking = ranked if isinstance(ranked, Ranking) else ranked.ranking
        return study_on(found.dataset, run_from_ranking("minilm", found.dataset.id, ranking, ""))
    own = create("bi-encoder", {"model": "all-MiniLM-L6-v2"})
    able = get("bi-encoder").able(own.settings)
    return study_on(found.dataset, rerank(found.dataset, own, capabilities=able))


@pytest.mark.model
@pytest.mark.parametrize("name", GUIDE)
def test_gains_are_those_of_the_guide(name):
    study = with_minilm(name)
    found = weights(study, study.chosen)
    means = found.table["mean"]
    gains = found.in_sample.change, found.gain.change, found.over_single.change
    assert (means[found.single], means[0], means[found.best], *gains) == pytest.approx(
        GUIDE[name], abs=0.003
    )


def with_permuted_labels(study, seed):
    """Return the study with the labels of each query permuted among its candidates."""
    rng = np.random.default_rng(seed)
    data = study.dataset
    frames = []
    for query, rows in data.qrels.groupby("query_id", sort=False):
        docs, _scores = data.candidates.documents_of(query)
        chosen = rng.permutation(docs)[: len(rows)]
        frames += [(query, doc, label) for doc, label in zip(chosen, rows["label"], strict=False)]
    permuted = pd.DataFrame(frames, columns=["query_id", "doc_id", "label"])
    new = Dataset(data.name, data.queries, data.documents, permuted, data.candidates)
    return replace(study, dataset=new, dataset_id=new.id)


def claims(study, sets):
    found = [weights(with_permuted_labels(study, seed), study.chosen) for seed in range(sets)]
    return sum(each.gain.proven and each.gain.change > 0 for each in found)


def test_permuted_labels_claim_no_gain():
    assert claims(a_study(queries=60), 10) <= 1


@pytest.mark.model
def test_permuted_labels_of_the_sample_claim_no_gain():
    assert claims(with_minilm(SAMPLE.name), 100) <= 5


def test_the_interval_includes_the_choice_of_weights():
    study = a_study(queries=60)
    found = weights(study, study.chosen)
    over_queries = (found.held_out - found.values[:, 0])[:, None]
    low, high = intervals(over_queries, study.statistics)
    assert found.gain.change == pytest.approx(over_queries.mean())
    assert found.gain.high - found.gain.low > 1.1 * (high[0] - low[0])


def test_the_command_prints_the_gains(tmp_path, capsys):
    """`fuse --tune` reads files; its numbers are the numbers of the section."""
    study = better()
    lists = [(each, study.ranking(each).frame()) for each in study.chosen]
    files = []
    for place, (_system, rows) in enumerate(lists):
        files.append(tmp_path / f"{place}.trec")
        lines = rows.assign(run="x", q="Q0")[["query_id", "q", "doc_id", "rank", "score", "run"]]
        lines.to_csv(files[-1], sep=" ", header=False, index=False)
    qrels = tmp_path / "qrels.txt"
    labels = study.dataset.qrels.assign(q="0")[["query_id", "q", "doc_id", "label"]]
    labels.astype({"label": int}).to_csv(qrels, sep=" ", header=False, index=False)
    texts = [*map(str, files)]
    assert main(["fuse", "--run", *texts, "--tune", str(qrels)]) == 0
    found = weights(study, study.chosen)
    text = re.sub(" +", " ", capsys.readouterr().out)
    for gain in (found.in_sample, found.gain, found.over_single):
        assert f"{signed(gain.change)} {signed(gain.low)} … {signed(gain.high)}" in text
    assert text.count("no evidence") == 1 and "best of 65 variants on 150 queries: z" in text
    # One list is in the order of the labels and wins; the other one is in the opposite order.
    rows = lists[0][1].merge(labels, how="left", on=["query_id", "doc_id"]).fillna({"label": 0})
    for name, sign in (("worst", -1), ("best", 1)):
        order = rows.assign(score=sign * rows["label"].astype(float), q="Q0", run="x")
        order = order.sort_values(["query_id", "score"], ascending=[True, False])
        order["rank"] = order.groupby("query_id").cumcount() + 1
        order["score"] = -order["rank"]
        order = order[["query_id", "q", "doc_id", "rank", "score", "run"]]
        order.to_csv(tmp_path / f"{name}.trec", sep=" ", header=False, index=False)
    opposite = [str(tmp_path / f"{name}.trec") for name in ("worst", "best")]
    assert main(["fuse", "--run", *opposite, "--tune", str(qrels)]) == 0
    assert capsys.readouterr().out.endswith("variants on 150 queries: best alone\n")
    assert main(["fuse", "--run", *texts]) == 2
    assert main(["fuse", "--run", texts[0], "--tune", str(qrels)]) == 2


# A run with tuned weights.


def test_a_tuned_run_proves_nothing_on_its_queries():
    study = better()
    found = weights(study, study.chosen)
    assert found.in_sample.change > 0 and found.chosen.fusion is not None
    parts = parts_of(study)
    stored = fuse(study.dataset, parts, found.chosen.fusion, "tuned", found.record(study))
    plain = fuse(study.dataset, parts, found.chosen.fusion, "tuned")
    assert stored.id != plain.id and Tuned.of(plain.settings) is None
    assert Tuned.of(stored.settings) == found.record(study)
    of_parts = fuse(
        study.dataset,
        [parts[0], CombinedRun("tuned", stored.ranking, stored)],
        found.chosen.fusion,
        "again",
    )
    compared = study_on(study.dataset, stored, plain, of_parts)
    kinds = {
        each: compared.comparison.row(each, compared.spec)["verdict"]
        for each in compared.challengers
    }
    assert kinds == {stored.id: "unproven", plain.id: "better", of_parts.id: "unproven"}
    tables = {each: compared.segment(each, "query_length") for each in (stored.id, plain.id)}
    assert tables[stored.id]["p"].isna().all() and tables[plain.id]["p"].notna().any()
    assert "in-sample" in compared.comparison.verdict(stored.id, compared.spec).sentence
    for each in (stored.id, of_parts.id):
        first = caveats(compared, each)[0]
        assert first.code == "tuned" and "held-out" in first.sentence(compared)
    assert all(each.code != "tuned" for each in caveats(compared, plain.id))
    pairs = [(query, doc) for query in study.dataset.query_text().index for doc in LETTERS]
    table = pd.DataFrame(pairs, columns=["query_id", "doc_id"]).assign(error="")
    judge = Judgements("judge", (0, 1), table.assign(grade=(table["doc_id"] == "a") * 1.0))
    assert {each: found.kind for each, found in verdicts(compared, judge).items()} == kinds
    as_baseline = study_on(study.dataset, stored, baseline=stored.id, challengers=(FIRST_STAGE,))
    assert as_baseline.comparison.row(FIRST_STAGE, compared.spec)["verdict"] == "unproven"
    elsewhere = replace(stored, dataset_id="another")
    assert tuned(elsewhere, lambda part: None) is None


def better(added=0.4):
    """Return a study of two rankings by independent noisy scores: fused, they are better. added: to
    the score of relevant documents in the second."""
    rng = np.random.default_rng(0)
    ids = [f"q{at}" for at in range(150)]

    def ranking(added=0.4):
        scores = rng.random((len(ids), len(LETTERS))) + added * np.eye(len(LETTERS))[0]
        queries, docs = np.repeat(ids, len(LETTERS)), np.tile(list(LETTERS), len(ids))
        return Ranking.from_columns(queries, docs, scores.ravel())

    data = data_of(ranking(), {query: {"a": 1.0} for query in ids})
    return study_on(data, run_from_ranking("run", data.id, ranking(added), "run.trec"))
