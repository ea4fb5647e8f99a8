"""The policy: applied steps equal the numbers of their sections, its file, and its Python."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import rankdash as rd
from rankdash.core.base.errors import DataError
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate, judge
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.costs import depth_values, depths
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.policy.deadline import deadline
from rankdash.features.policy.floor import floor_values
from rankdash.features.policy.policy import Choices, Fuse, Policy, apply, expected, outcomes
from rankdash.features.policy.policy_file import code, document, read, written
from rankdash.features.policy.skipping import margins, margins_of
from tests.approved import table
from tests.study.builders import study_on
from tests.ui.parts import dataset_of

EVERY = {
    "nothing": {},
    "depth": {"depth": 20},
    "skip": {"skip_at": 0.3, "skip_of": 50},
    "skip at the cutoff": {"skip_at": 0.05, "skip_rank": 10, "skip_of": 20},
    "deadline": {"deadline_ms": 900.0},
    "floor": {"floor": 0.2},
    "rrf": {"fuse": ("rrf", 0.3)},
    "minmax": {"fuse": ("minmax", 0.4)},
    "z": {"fuse": ("z", 0.5)},
    "every step, fused": {
        "depth": 30,
        "skip_at": 0.4,
        "skip_of": 50,
        "floor": 0.1,
        "fuse": ("minmax", 0.4),
    },
    "every step": {
        "depth": 30,
        "skip_at": 0.4,
        "skip_of": 50,
        "deadline_ms": 900.0,
        "floor": 0.1,
    },
}
POLICIES = pytest.mark.parametrize("steps", EVERY.values(), ids=EVERY)


@pytest.fixture(scope="module")
def study(shipped: Callable[[str], Study]) -> Study:
    return shipped("en")


@pytest.fixture(scope="module")
def system(study: Study) -> str:
    return next(each for each in study.challengers if "MiniLM" in study.name(each))


def policy_with(system: str, fuse: tuple[str, float] | None = None, **steps: float) -> Policy:
    """Return a policy. fuse: the method, and the weight of the first stage."""
    if fuse is None:
        return Policy(system, **steps)
    method, weight = fuse
    how = Fusion(method, (weight, 1 - weight), 20.0 if method == "rrf" else 60.0)
    return Policy(system, fuse=Fuse((FIRST_STAGE, system), how), **steps)


@POLICIES
def test_the_values_are_of_the_lists_that_it_shows(study, system, steps):
    policy = policy_with(system, **steps)
    rows = outcomes(policy, study)
    ranking = apply(policy, study)
    judged = judge(ranking, study.dataset.labels, study.conventions)
    found = evaluate(judged, [study.spec], study.conventions)
    values = pd.Series(found.values[:, 0], index=found.query_ids).reindex(rows.index)
    shown = rows["value"].notna()
    assert shown.any()
    np.testing.assert_allclose(rows["value"][shown], values[shown], atol=1e-12)


def test_one_step_equals_the_section_of_this_step(study, system):
    def value(**steps: float) -> pd.Series:
        return outcomes(Policy(system, **steps), study)["value"]

    pairs = study.pairs_of(FIRST_STAGE, system, study.spec)
    by_depth = depth_values(study, system)
    for depth in (5, 20, 50):
        shared = by_depth.index.intersection(value().index)
        np.testing.assert_allclose(value(depth=depth)[shared], by_depth[depth][shared])
    limit = deadline(study, system)
    for ms in (700.0, 1000.0):
        alone = pd.Series(limit.at(ms), index=limit.query_ids).dropna()
        np.testing.assert_allclose(value(deadline_ms=ms).dropna()[alone.index], alone)
    for score in (0.1, 0.3):
        alone = pd.Series(floor_values(study, system, (score,))[:, 0], index=pairs["query_id"])
        np.testing.assert_allclose(value(floor=score), alone.dropna())
    gap = margins(study, FIRST_STAGE, 1)["first"]
    paired = pairs.set_index("query_id").dropna(subset="delta")
    mixed = paired["before"].where(gap.reindex(paired.index) >= 0.3, paired["after"])
    np.testing.assert_allclose(value(skip_at=0.3), mixed)


@POLICIES
def test_the_python_of_a_policy_shows_the_same_lists(study, system, steps, tmp_path, monkeypatch):
    policy, run = policy_with(system, **steps), study.run(system)
    found = expected(study, Choices(system))
    content = document(study, Choices(system), replace(found, policy=policy), None)
    (tmp_path / "policy.json").write_bytes(written(content))
    monkeypatch.chdir(tmp_path)
    search = {}
    exec(code(policy), search)
    times = run.queries.set_index("query_id")
    shown = apply(policy, study)
    compared = outcomes(policy, study)["value"].dropna().index
    for query in compared:
        scores = dict(zip(*run.ranking.documents_of(query), strict=True))

        def rerank(_query, documents, deadline_ms, query=query, scores=scores):
            row = times.loc[query]
            ms = row["latency_ms"] * min(len(documents), row["pairs"]) / row["pairs"]
            if deadline_ms is not None and ms > deadline_ms:
                return None
            return {document: scores[document] for document in documents}

        first = list(zip(*study.ranking(FIRST_STAGE).documents_of(query), strict=True))
        assert search["search"](query, first, rerank) == shown.documents_of(query)[0], query


def test_longer_lists_have_the_same_skips(study, system, tmp_path, monkeypatch):
    choices = Choices(system, skip_loss=0.05)
    found = expected(study, choices)
    assert found.policy.skip_of == 50
    (tmp_path / "policy.json").write_bytes(written(document(study, choices, found, None)))
    monkeypatch.chdir(tmp_path)
    search = {}
    exec(code(found.policy), search)
    usual, lists, reranked = study.ranking(FIRST_STAGE), [], set()

    def rerank(query, documents, _deadline_ms):
        reranked.add(query)
        return dict.fromkeys(documents, 0.0)

    for query in usual.query_ids:
        documents, scores = usual.documents_of(query)
        # A shorter list contains all that a search found.
        more = [f"more {n}" for n in range(200)] if len(documents) == 50 else []
        longer = [*documents, *more], [*scores, *(scores[-1] - 1 - np.arange(len(more)))]
        lists.append((query, *longer))
        search["search"](query, list(zip(*longer, strict=True)), rerank)
    skipped = outcomes(found.policy, study)["skipped"]
    assert 0 < skipped.sum() < len(skipped)
    assert set(skipped.index[skipped]) == set(skipped.index) - reranked
    gap = margins_of(Ranking.from_lists(lists), 1, 50).set_index("query_id")["first"]
    pd.testing.assert_series_equal(gap, margins(study, FIRST_STAGE, 1)["first"])


@POLICIES
def test_a_policy_is_read_as_it_was_written(study, system, steps, tmp_path):
    policy, file = policy_with(system, **steps), tmp_path / "policy.json"
    found = replace(expected(study, Choices(system)), policy=policy)
    file.write_bytes(written(document(study, Choices(system), found, None)))
    assert read(file, study) == policy


def test_the_file_contains_what_is_expected(study, system, approved):
    choices = Choices(system, depth=20, skip_loss=0.05, deadline_ms=900.0, floor_alpha=0.05)
    content = document(study, choices, expected(study, choices), 0.4)
    # The last digits depend on the version of SciPy.
    text = re.sub(r"\d+\.\d{13,}", lambda each: f"{float(each[0]):.12g}", written(content).decode())
    approved("exports/policy", text)


def test_a_recommended_depth_is_fixed_too(study, system):
    depth = depths(study, system).curve.enough
    assert depth > 0
    found = expected(study, Choices(system, depth=depth))
    rows = outcomes(Policy(system, depth=depth), study)
    assert found.tuned == ()
    assert found.quality.mean == pytest.approx(rows["value"].mean())


BROKEN = {
    "no JSON": "{",
    "another file": "{}",
    "another version": '{"policy": 2, "steps": [{"rerank": {"system": "MiniLM"}}]}',
    "no steps": '{"policy": 1, "steps": []}',
    "no reranker": '{"policy": 1, "steps": [{"floor": {"score": 1}}]}',
    "an unknown step": '{"policy": 1, "steps": [{"rank": {}}]}',
    "a depth in words": '{"policy": 1, "steps": [{"rerank": {"system": "MiniLM", "depth": "20"}}]}',
    "a depth of nothing": '{"policy": 1, "steps": [{"rerank": {"system": "MiniLM", "depth": 0}}]}',
    "no margin": (
        '{"policy": 1, "steps": [{"skip_if": {"margin": 1}}, {"rerank": {"system": "M"}}]}'
    ),
    "distant ranks": (
        '{"policy": 1, "steps": [{"skip_if": {"margin_1_3_at_least": 1, "of_first": 9}}, '
        '{"rerank": {"system": "M"}}]}'
    ),
    "a margin over an unknown number of documents": (
        '{"policy": 1, "steps": [{"skip_if": {"margin_1_2_at_least": 1}}, '
        '{"rerank": {"system": "M"}}]}'
    ),
    "a margin over more documents than the lists have": (
        '{"policy": 1, "steps": [{"skip_if": {"margin_1_2_at_least": 1, "of_first": 999}}, '
        '{"rerank": {"system": "M"}}]}'
    ),
    "an unknown system": '{"policy": 1, "steps": [{"rerank": {"system": "MiniLM-L12"}}]}',
}


def test_what_is_wrong_in_a_file_is_named(study, tmp_path, approved):
    file, found = tmp_path / "policy.json", {}
    for name, text in BROKEN.items():
        file.write_text(text)
        with pytest.raises(DataError) as error:
            read(file, study)
        found[name] = str(error.value).replace(str(tmp_path), "FOLDER")
    with pytest.raises(DataError) as error:
        read(tmp_path / "other.json", study)
    found["no file"] = str(error.value).replace(str(tmp_path), "FOLDER")
    approved("exports/policy_errors", table(found))


def of_chance(seed: int, queries: int = 40, docs: int = 6) -> Study:
    """Return a study whose first stage and reranker order the documents at random."""
    rng = np.random.default_rng(seed)
    ids = [f"q{q}" for q in range(queries)]
    names = [f"d{d}" for d in range(docs)]
    rows = [f"{query},words of {query},{name},text {name},{int(name == 'd0')},{rng.random():.6f}"
            for query in ids for name in names]  # fmt: skip
    data = dataset_of("query_id,query,doc_id,document,label,score\n" + "\n".join(rows))
    lists = [(query, rng.permutation(names).tolist(), np.sort(rng.random(docs))[::-1].tolist())
             for query in ids]  # fmt: skip
    run = run_from_ranking("run", data.id, Ranking.from_lists(lists), "run")
    return study_on(data, run, others=(), cutoff=3)


@pytest.mark.parametrize(
    "choice",
    [{"weights": True}, {"skip_loss": 0.3}, {"weights": True, "skip_loss": 0.3}],
    ids=["weights", "skip", "both"],
)
def test_a_gain_by_chance_is_not_expected_on_new_queries(choice):
    """In-sample, steps that are chosen on random rankings raise the mean."""
    in_sample, held_out = [], []
    for seed in range(8):
        study = of_chance(seed)
        [system] = study.challengers
        systems = (FIRST_STAGE, system) if "weights" in choice else ()
        choices = Choices(system, **(choice | {"weights": systems}))
        found = expected(study, choices)
        rows = outcomes(found.policy, study)
        in_sample.append(float((rows["value"] - rows["full"]).mean()))
        held_out.append(found.over_full.mean)
    assert np.mean(in_sample) - np.mean(held_out) > 0.01
    assert abs(np.mean(held_out)) < 0.04


def test_the_package_fuses_with_the_first_stage(study):
    [system] = (each for each in study.challengers if study.name(each) == "bge-small")
    content = rd.policy(study, study.run(system), fuse=True)
    choices = Choices(system, weights=(FIRST_STAGE, system))
    assert "fuse" in content["steps"][1]
    assert content == document(study, choices, expected(study, choices), None)
