"""What a run recorded, in a few words; and which key a field still holds."""

import math
from types import SimpleNamespace

import pytest

from rankdash.ranking.measured import Measured
from rankdash.ui.run import variants_form
from rankdash.ui.runs import cost_line, key_field
from rankdash.ui.runs.run_records import Record, reranker_title, settings_in_words


def record(machine: dict[str, object] | None = None, **measured: object) -> Record:
    return Record(machine or {}, Measured(**measured) if measured else None)


@pytest.mark.parametrize(
    ("measured", "share"),
    [({"scored_pairs": 30, "cached_pairs": 10}, 0.25), ({"scored_pairs": 30}, 0.0),
     ({"cached_pairs": 10}, 1.0), ({"repeats": 1}, math.nan), ({}, math.nan)],
)  # fmt: skip
def test_a_share_from_the_cache_is_of_all_pairs(measured, share):
    assert record(**measured).from_cache == pytest.approx(share, nan_ok=True)


def test_the_runtimes_of_a_cascade_stand_in_the_order_of_its_stages():
    machine = {"second_runtime": "torch", "first_runtime": "onnx", "other": 1}
    assert record(machine).runtimes == (("first_", "onnx"), ("second_", "torch"))
    assert record({"runtime": "onnx"}).runtimes == (("", "onnx"),)
    assert record().runtimes == ()


def test_only_what_a_reader_has_to_know_is_remarked():
    assert list(record().remarks()) == []
    assert list(record({"runtime": "onnx"}, scored_pairs=5).remarks()) == []
    every = record(
        {"shipped_with": "sample", "second_runtime": "int8", "second_rank_agreement": 0.98765},
        seconds=10.0, cpu_seconds=1.0, threads=2, scored_pairs=1, cached_pairs=1,
        requests=1000, refused=250,
    )  # fmt: skip
    assert list(every.remarks()) == [
        "shipped with the sample",
        "machine was busy",
        "250 of 1,000 requests refused (429), 25%",
        "int8: agreement 0.9877",
        "50% from the score cache",
    ]


def test_settings_left_empty_are_left_out_and_a_kind_that_is_gone_keeps_its_name():
    assert settings_in_words({"k": 60, "model": "", "stem": False, "weight": 0}) == (
        "k=60, stem=False, weight=0"
    )
    assert settings_in_words({}) == ""
    assert reranker_title("gone") == "gone"
    assert reranker_title("bm25") == "BM25"


# The key of a field.


def test_a_key_is_forgotten_once_none_of_its_runs_is_left_unless_another_was_typed(session):
    session["key.bm25.0"] = " secret "
    key_field.lend("bm25", "one")
    key_field.lend("bm25", "two")
    key_field.clear({"one", "other"})
    assert session["key.bm25.0"] == " secret "
    session["key.bm25.0"] = "another"
    key_field.clear({"other"})
    assert session["key.bm25.0"] == "another", "typed since, for another run"
    key_field.lend("bm25", "three")
    key_field.clear(set())
    assert "key.bm25.0" not in session
    session["key.bm25.1"] = "another"
    key_field.clear(set())
    assert session["key.bm25.1"] == "another", "typed anew, and given to nobody"


@pytest.mark.parametrize(
    ("offered", "fixed", "remedy"),
    [(True, False, "tick"), (False, True, "Type it."), (False, False, "key_variable=none")],
)
def test_what_is_missing_names_what_can_be_done_here(offered, fixed, remedy):
    said = key_field._missing(offered, fixed)
    assert said.startswith("No key yet. Type it") and remedy in said
    assert ("tick" in said) is offered and ("key_variable" in said) is (not offered and not fixed)


# What a run would take.


@pytest.mark.parametrize(
    ("tokens", "said"),
    [(0, "0"), (-1, "0"), (7, "7"), (94.9, "95"), (123, "120"), (125_000, "120,000"),
     (99_900, "100,000"), (1_240_000, "1,200,000")],
)  # fmt: skip
def test_an_estimate_has_two_figures(tokens, said):
    assert cost_line.rounded(tokens) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(True, "yes"), (False, "no"), ("a", "a"), (2, "2"), (2.0, "2"), (0.25, "0.250")],
)
def test_the_value_of_a_variant_is_said_by_its_kind(value, said):
    assert variants_form._shown(value) == said


@pytest.mark.parametrize(
    ("choices", "type_", "varies"),
    [((), int, True), ((), float, True), ((), bool, True), ((), str, False), (("a",), str, True)],
)
def test_what_names_a_model_is_another_reranker_and_no_variant(choices, type_, varies):
    assert variants_form._varies(SimpleNamespace(choices=choices, type=type_)) is varies
