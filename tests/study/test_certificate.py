"""Both verifiers accept the certificates of studies, and refuse changed certificates."""

import ast
import json
from dataclasses import replace

import numpy as np
import pytest

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.metrics import Conventions
from rankdash.core.study import certificate
from tests.sets import ROOT, SETS
from tests.study.builders import small
from tests.study.certified import (
    SETTINGS,
    by_docs,
    by_rankdash,
    mutant,
    report_of,
    resealed,
    study_of,
    with_text,
)

METRICS = ("ndcg", "hit", "mrr", "map_graded", "judged", "recall", "ndcg_exp")
# Changed fields that no other field and no file shows.
FREE = ("made", "systems")


@pytest.fixture
def refused(tmp_path):
    """Return what both verifiers refuse in the report of a study."""

    def both(study, read=None):
        report = report_of(certificate.certificate(study))
        return by_rankdash(report, read or study), by_docs(report, tmp_path)

    return both


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("challengers", "every"), [(0, 36), (1, 5), (11, 12)])
def test_both_verifiers_accept_the_certificate_of_a_study(refused, name, challengers, every):
    for at, settings in enumerate(SETTINGS[::every]):
        study = study_of(
            name, challengers, settings, metric=METRICS[at % 7], cutoff=(10, 5, None)[at % 3]
        )
        assert refused(study, study_of(name, challengers, SETTINGS[0])) == ([], [])


@pytest.mark.thorough
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_both_verifiers_accept_it_under_all_settings(refused, name, settings):
    for metric in METRICS:
        assert refused(study_of(name, 2, settings, metric=metric)) == ([], [])


def lists(of, queries):
    return {f"q{n:04}": of(n) for n in range(queries)}


@pytest.mark.parametrize(
    ("queries", "settings"),
    [
        (1_100, StatisticsSettings(interval="bca", resamples=600, test="sign-flip")),
        (1_100, StatisticsSettings(interval="percentile", resamples=700, test="wilcoxon")),
        (999, StatisticsSettings(interval="bca", resamples=501, test="t", correction="bh")),
        (40, StatisticsSettings(interval="bca", equal_margin=0.3)),
        (12, StatisticsSettings(test="wilcoxon", level=0.8, equal_margin=2.0)),
        (5, StatisticsSettings()),
        (1, StatisticsSettings()),
    ],
)
def test_they_agree_for_many_and_for_few_queries(refused, queries, settings):
    rng = np.random.default_rng(queries)
    study = small(
        lists(lambda n: "abcd", queries),
        lists(lambda n: "".join(rng.permutation([*"abcd"])), queries),
        lists(lambda n: "abdc" if n % 3 else "bacd", queries),
        labels=lists(lambda n: {"b": 1.0 + n % 2, "d": 0.0, "c": float(n % 2)}, queries),
        statistics=settings,
    )
    assert refused(study) == ([], [])


def test_they_agree_on_kinds_without_a_comparison(refused):
    first, relevant = lists(lambda n: "ab", 8), lists(lambda n: {"a": 1.0}, 8)
    none = lists(lambda n: {"a": 0.0}, 8)
    half = [{q: docs for q, docs in first.items() if (q < "q0004") == one} for one in (True, False)]
    apart = small(first, *half, labels=relevant)
    one, other = apart.challengers
    studies = {
        "no_values": small(first, first, labels=none),
        "nothing_common": replace(apart, baseline=one, challengers=(other,)),
        "identical": small(first, first, labels=none, conventions=Conventions(no_relevant="count")),
        "descriptive": small(first, first, labels=relevant, metric="judged"),
    }
    for kind, study in studies.items():
        assert refused(study) == ([], [])
        rows = certificate.certificate(study)["numbers"][study.spec]
        assert rows[1]["verdict"] == kind


@pytest.fixture(scope="module")
def sealed():
    study = study_of("helpcentre", 2, SETTINGS[0], others=("mrr",))
    return certificate.opened(report_of(certificate.certificate(study)))[0]


def test_a_thousand_changed_certificates_are_refused_by_both(sealed, tmp_path):
    study = study_of("helpcentre", 2, SETTINGS[0])
    assert not by_rankdash(with_text(json.dumps(sealed)), study)
    assert not by_docs(with_text(json.dumps(sealed)), tmp_path)
    count = 0
    for seed in range(1_100):
        kind, text = mutant(sealed, seed)
        if kind == "doubled" or not same(text, sealed):
            count += 1
            report = with_text(text)
            assert by_rankdash(report, study), (seed, kind)
            assert by_docs(report, tmp_path), (seed, kind)
    assert count >= 1_000


def same(text, content):
    """Return whether a text has the canonical content."""
    try:
        return certificate.canonical(json.loads(text)) == certificate.canonical(content)
    except (ValueError, RecursionError):
        return False


def test_changed_numbers_and_inputs_are_refused_even_with_new_hashes(sealed, tmp_path):
    study = study_of("helpcentre", 2, SETTINGS[0])
    count = 0
    for seed in range(120):
        try:
            text = resealed(mutant(sealed, seed)[1])
        except (ValueError, RecursionError):
            continue
        changed = json.loads(text)
        fields = {name for name in sealed if changed.get(name) != sealed[name]}
        # The script reports changed content without an error message of Python.
        by_docs(with_text(text), tmp_path)
        if fields - {"sha256", "data_sha256", "data", "statistics", "conventions", *FREE}:
            count += 1
            assert by_rankdash(with_text(text), study), (seed, fields)
    assert count > 50


def test_the_script_needs_only_numpy_and_is_short():
    text = (ROOT / "docs" / "verify.py").read_text("utf-8")
    names = {
        name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert names == {
        *("hashlib", "html", "json", "math", "re", "sys", "pathlib", "statistics", "numpy"),
    }
    assert len(text.splitlines()) <= 300
