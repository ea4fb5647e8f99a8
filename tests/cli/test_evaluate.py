"""`evaluate`: the numbers of the referee, the shape that was promised, every rule in reach."""

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

REFEREE = {
    "ndcg@10": "ndcg_cut_10",
    "map": "map",
    "mrr": "recip_rank",
    "precision@5": "P_5",
    "recall@20": "recall_20",
}


def refereed(qrels: Path, run: Path, *, header: bool) -> dict[str, dict[str, float]]:
    """pytrec_eval's values for queries in both files."""
    labels: dict[str, dict[str, int]] = {}
    for line in qrels.read_text().splitlines()[1 if header else 0 :]:
        query, *_, doc, label = line.split()
        labels.setdefault(query, {})[doc] = int(label)
    scores: dict[str, dict[str, float]] = {}
    for line in run.read_text().splitlines():
        query, _, doc, _, score, _ = line.split()
        scores.setdefault(query, {})[doc] = float(score)
    found = pytrec_eval.RelevanceEvaluator(labels, set(REFEREE.values())).evaluate(scores)
    return {
        query: {spec: values[name] for spec, name in REFEREE.items()}
        for query, values in found.items()
    }


def agrees(system: dict, expected: dict[str, dict[str, float]]) -> None:
    assert system["per_query"].keys() == expected.keys()
    for query, values in expected.items():
        assert system["per_query"][query] == pytest.approx(values, abs=1e-9), query
    for spec in REFEREE:
        mean = sum(values[spec] for values in expected.values()) / len(expected)
        assert system["mean"][spec] == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize("name", ["initial", "rerank_minilm"])
def test_under_trec_conventions_the_numbers_are_those_of_trec_eval(
    run: Callable, shared_data: Path, name: str
):
    for folder in ("medquad", "cmrc_zh"):
        qrels = shared_data / folder / "qrels.tsv"
        ranking = shared_data / folder / f"{name}.trec"
        outcome = run(
            "evaluate", "--qrels", qrels, "--run", ranking, "--metrics", ",".join(REFEREE),
            "--conventions", "trec_eval", "--format", "json", "--per-query",
        )  # fmt: skip
        assert outcome.code == 0
        agrees(outcome.json["systems"][name], refereed(qrels, ranking, header=True))


@pytest.mark.parametrize("seed", range(3))
def test_with_ties_and_missing_queries_too(run: Callable, tmp_path: Path, seed: int):
    rng = np.random.default_rng(seed)
    qrels, ranking = tmp_path / "made.qrels", tmp_path / "made.trec"
    qrels.write_text(
        "".join(
            f"{query} 0 d{doc} {rng.integers(-1, 4)}\n"
            for query in range(12)
            for doc in rng.permutation(40)[:15]
        )
    )
    ranking.write_text(
        "".join(
            f"{query} Q0 d{doc} 1 {rng.integers(0, 6) / 3:.6f} made\n"
            for query in range(3, 15)
            for doc in rng.permutation(60)[:30]
        )
    )
    outcome = run(
        "evaluate", "--qrels", qrels, "--run", ranking, "--metrics", *REFEREE,
        "--conventions", "trec_eval", "--format", "json",
    )  # fmt: skip
    agrees(outcome.json["systems"]["made"], refereed(qrels, ranking, header=False))


def test_the_json_has_the_promised_shape(run: Callable, qrels: Path, first: Path, second: Path):
    outcome = run(
        "evaluate", "--qrels", qrels, "--run", first, "--run", second,
        "--metrics", "mrr@10,p@1", "--format", "json",
    )  # fmt: skip
    assert outcome.json.keys() == {"settings", "labelling", "judge", "systems"}
    assert list(outcome.json["systems"]) == ["first", "second"]
    system = outcome.json["systems"]["first"]
    assert system.keys() == {"mean", "counts", "left_out", "per_query"}
    # The rule of a file is trec_eval's, document id descending: d3 comes before d2.
    assert system["per_query"] == {
        "q1": {"mrr@10": 1.0, "p@1": 1.0},
        "q2": {"mrr@10": 0.5, "p@1": 0.0},
        "q4": {"mrr@10": 0.0, "p@1": 0.0},
    }
    assert system["mean"] == {"mrr@10": 0.5, "p@1": pytest.approx(1 / 3)}
    assert system["left_out"] == {"q3": "no_relevant"}
    counts = system["counts"]
    assert counts["queries"] == 4
    assert counts["missing"] == counts["no_relevant"] == counts["tied"] == 1
    assert counts["unlabelled"] == 1
    settings = outcome.json["settings"]
    assert settings["ties"] == "as_ranked"
    assert settings["metrics"] == {"mrr@10": "mrr@10", "p@1": "precision@1"}


def test_the_mean_is_that_of_the_values_shown(run: Callable, shared_data: Path):
    folder = shared_data / "medquad"
    outcome = run(
        "evaluate", "--qrels", folder / "qrels.tsv", "--run", folder / "initial.trec",
        "--metrics", "ndcg@10,judged@10,recall@3", "--threshold", "2", "--format", "json",
    )  # fmt: skip
    system = outcome.json["systems"]["initial"]
    for spec, mean in system["mean"].items():
        values = [each[spec] for each in system["per_query"].values() if spec in each]
        assert mean == pytest.approx(math.fsum(values) / len(values), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {"q1": 1.0, "q2": 0.5, "q4": 0.0}),
        (("--ties", "as_ranked"), {"q1": 1.0, "q2": 0.5, "q4": 0.0}),
        (("--ties", "stable"), {"q1": 0.5, "q2": 0.5, "q4": 0.0}),
        (("--threshold", "2"), {"q1": 1 / 3}),
        (("--judged-only",), {"q1": 1.0, "q2": 1.0, "q4": 0.0}),
        (("--missing", "skip"), {"q1": 1.0, "q2": 0.5}),
        (("--no-relevant", "count"), {"q1": 1.0, "q2": 0.5, "q3": 0.0, "q4": 0.0}),
        (("--conventions", "trec_eval"), {"q1": 1.0, "q2": 0.5, "q3": 0.0}),
        (
            ("--conventions", "trec_eval", "--missing", "zero"),
            {"q1": 1.0, "q2": 0.5, "q3": 0.0, "q4": 0.0},
        ),
        (("--conventions", "trec_eval", "--no-relevant", "skip"), {"q1": 1.0, "q2": 0.5}),
        (("--conventions", "trec_eval", "--ties", "stable"), {"q1": 0.5, "q2": 0.5, "q3": 0.0}),
    ],
)
def test_every_rule_can_be_chosen_and_overrides_the_preset(
    run: Callable, qrels: Path, first: Path, options: tuple[str, ...], expected: dict[str, float]
):
    outcome = run(
        "evaluate", "--qrels", qrels, "--run", first, "--metrics", "mrr", "--format", "json",
        *options,
    )  # fmt: skip
    per_query = outcome.json["systems"]["first"]["per_query"]
    assert {query: values["mrr"] for query, values in per_query.items()} == pytest.approx(expected)


def test_nothing_to_average_is_null_and_not_zero(run: Callable, qrels: Path, first: Path):
    outcome = run(
        "evaluate", "--qrels", qrels, "--run", first, "--threshold", "9",
        "--metrics", "mrr", "--format", "json",
    )  # fmt: skip
    assert outcome.json["systems"]["first"]["mean"] == {"mrr": None}
    assert outcome.json["systems"]["first"]["per_query"] == {}


def test_the_table_names_systems_metrics_and_what_was_left_out(
    run: Callable, qrels: Path, first: Path
):
    outcome = run("evaluate", "--qrels", qrels, "--run", first, "--metrics", "mrr", "--per-query")
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["system", "mrr"]
    assert lines[1].split() == ["first", "0.5000"]
    assert (
        "first: 3 of 4 queries counted; 1 missing from the ranking (0 in the mean); 1 without a "
        "relevant document"
    ) in outcome.out
    assert ["first", "q3", "no_relevant", "–"] in [line.split() for line in lines]
    assert ["first", "q4", "missing", "0.0000"] in [line.split() for line in lines]


def test_a_missing_query_that_is_left_out_counts_no_zero(run: Callable, qrels: Path, first: Path):
    outcome = run(
        "evaluate", "--qrels", qrels, "--run", first, "--metrics", "mrr", "--missing", "skip"
    )
    assert outcome.out.splitlines()[3] == (
        "first: 2 of 4 queries counted; 1 missing from the ranking; 1 without a relevant document; "
        "1 with tied scores; 1 ranked but without labels"
    )


def test_one_query_is_one(run: Callable, tmp_path: Path, first: Path):
    alone = tmp_path / "alone.qrels"
    alone.write_text("q1 0 d1 1\n")
    outcome = run("evaluate", "--qrels", alone, "--run", first, "--metrics", "mrr")
    assert outcome.out.splitlines()[3] == (
        "first: 1 of 1 query counted; 1 with tied scores; 3 ranked but without labels"
    )


def test_the_csv_holds_unrounded_numbers(run: Callable, qrels: Path, first: Path):
    arguments = (
        "evaluate",
        "--qrels",
        qrels,
        "--run",
        first,
        "--metrics",
        "p@3",
        "--format",
        "csv",
    )
    means = list(csv.DictReader(io.StringIO(run(*arguments).out)))
    assert means[0]["system"] == "first"
    assert float(means[0]["p@3"]) == pytest.approx(1 / 3, abs=1e-15)
    assert means[0]["no_relevant"] == "1"
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--per-query").out)))
    assert [row["query_id"] for row in rows] == ["q1", "q2", "q3", "q4"]
    assert (rows[2]["state"], rows[2]["p@3"]) == ("no_relevant", "")


def test_a_formula_in_the_csv_is_defused_and_a_number_is_not(run: Callable, tmp_path: Path):
    qrels, ranking = tmp_path / "a.qrels", tmp_path / "=cmd.trec"
    qrels.write_text("=1+1 0 d1 1\n-7 0 d1 1\n")
    ranking.write_text("=1+1 Q0 d1 1 1.0 x\n-7 Q0 d1 1 1.0 x\n")
    outcome = run(
        "evaluate", "--qrels", qrels, "--run", ranking, "--metrics", "mrr", "--format", "csv",
        "--per-query",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert {row["system"] for row in rows} == {"'=cmd"}
    assert [row["query_id"] for row in rows] == ["'=1+1", "-7"]


def test_runs_of_one_name_are_told_apart_by_their_folders(
    run: Callable, qrels: Path, first: Path, tmp_path: Path
):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.trec").write_text(first.read_text())
    outcome = run(
        "evaluate", "--qrels", qrels, "--run", tmp_path / "a" / "run.trec",
        tmp_path / "b" / "run.trec", first, "--format", "json",
    )  # fmt: skip
    assert list(outcome.json["systems"]) == ["a/run", "b/run", "first"]


def test_runs_that_differ_in_their_ending_only_keep_it(
    run: Callable, qrels: Path, first: Path, tmp_path: Path
):
    other = tmp_path / "first.txt"
    other.write_text(first.read_text())
    outcome = run("evaluate", "--qrels", qrels, "--run", first, other, "--format", "json")
    assert list(outcome.json["systems"]) == ["first.trec", "first.txt"]


def test_a_run_given_twice_is_refused(run: Callable, qrels: Path, first: Path):
    outcome = run("evaluate", "--qrels", qrels, "--run", first, first.parent / "." / first.name)
    assert outcome.code == 2
    assert "given twice" in outcome.err


FORMS = {
    "run.jsonl": '{"query_id": "q1", "doc_id": "d1", "score": 2.5}\n'
    '{"query_id": "q1", "doc_id": "d2", "score": 1.25}\n'
    '{"query_id": "q2", "doc_id": "d4", "score": 3.75}\n'
    '{"query_id": "q2", "doc_id": "d1", "score": 0.55}\n',
    "run.csv": "query_id,doc_id,rank\nq1,d1,1\nq1,d2,2\nq2,d4,1\nq2,d1,2\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_rankings_come_in_many_forms(run: Callable, qrels: Path, tmp_path: Path, form: str):
    ranking = tmp_path / form
    ranking.write_text(FORMS[form])
    outcome = run(
        "evaluate", "--qrels", qrels, "--run", ranking, "--metrics", "mrr", "--missing", "skip",
        "--format", "json",
    )  # fmt: skip
    assert outcome.json["systems"]["run"]["per_query"] == {"q1": {"mrr": 1.0}, "q2": {"mrr": 0.5}}


def test_queries_and_documents_may_be_named_by_their_texts(run: Callable, tmp_path: Path):
    labels, ranking = tmp_path / "labels.csv", tmp_path / "scores.csv"
    labels.write_text(
        "query,document,label\nhow to pay,by card,1\nhow to pay,by post,0\nwhere,here,1\n"
    )
    # Other queries first: by position the two files would be joined wrongly.
    ranking.write_text(
        "query,document,score\nwhere,there,2.5\nwhere,here,1.5\nhow to pay,by card,0.9\n"
        "how to pay,by post,0.1\n"
    )
    outcome = run(
        "evaluate", "--qrels", labels, "--run", ranking, "--metrics", "mrr", "--format", "json"
    )
    values = [each["mrr"] for each in outcome.json["systems"]["scores"]["per_query"].values()]
    assert values == [1.0, 0.5]


def test_labels_and_ranking_may_be_one_file(run: Callable, tmp_path: Path):
    rows = tmp_path / "rows.csv"
    rows.write_text(
        "query_id,doc_id,label,first_stage_score\nq1,d1,0,2.5\nq1,d2,1,1.5\nq2,d1,1,0.5\n"
    )
    outcome = run(
        "evaluate", "--qrels", rows, "--run", rows, "--metrics", "mrr", "--format", "json"
    )
    assert outcome.json["systems"]["rows"]["mean"] == {"mrr": 0.75}


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (("label", "score"), ""),
        (("label",), "The file holds no ranking"),
        (("score",), "The file holds no labels"),
    ],
)
def test_one_file_with_labels_and_a_ranking_is_enough(run, tmp_path, held, said):
    """The relevant document is second for one query, first for the other."""
    rows = [("q1", "a", 3.7, 0), ("q1", "b", 2.2, 1), ("q2", "a", 3.1, 1), ("q2", "c", -1.4, 0)]
    lines = [("query_id", "doc_id", *held)]
    lines += [(q, d, *({"score": s, "label": r}[name] for name in held)) for q, d, s, r in rows]
    file = tmp_path / "both.csv"
    file.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    done = run("evaluate", file, "-m", "mrr", "--json")
    if said:
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert said in done.err
    else:
        assert done.json["systems"]["both"]["mean"] == {"mrr": 0.75}
        assert run("evaluate", "--qrels", file, "-m", "mrr", "--json").json == done.json


def test_labels_that_stand_in_the_ranking_file_change_nothing(
    run: Callable, qrels: Path, tmp_path: Path
):
    ranking = tmp_path / "scored.csv"
    ranking.write_text("query_id,doc_id,label,score\nq1,d2,3,2.5\nq1,d1,0,1.5\n")
    outcome = run(
        "evaluate", "--qrels", qrels, "--run", ranking, "--metrics", "mrr", "--missing", "skip",
        "--format", "json",
    )  # fmt: skip
    assert outcome.json["systems"]["scored"]["per_query"] == {"q1": {"mrr": 0.5}}


def test_labels_that_disagree_are_settled_by_the_rule_asked_for(
    run: Callable, qrels: Path, first: Path
):
    with qrels.open("a") as file:
        file.write("q2 0 d1 0\n")
    arguments = ("evaluate", "--qrels", qrels, "--run", first, "--metrics", "mrr")
    highest = run(*arguments, "--format", "json")
    assert "different labels: 1. The rule is: highest" in highest.err
    assert highest.json["systems"]["first"]["per_query"]["q2"] == {"mrr": 0.5}
    lowest = run(*arguments, "--conflict", "lowest", "--format", "json")
    assert lowest.json["systems"]["first"]["left_out"]["q2"] == "no_relevant"
    assert lowest.json["settings"]["conflict"] == "lowest"
    assert run(*arguments, "--conflict", "refuse").code == 2


def test_a_ranking_of_other_queries_is_an_error_with_an_example(
    run: Callable, qrels: Path, tmp_path: Path
):
    ranking = tmp_path / "other.trec"
    ranking.write_text("7 Q0 d1 1 1.0 x\n")
    outcome = run("evaluate", "--qrels", qrels, "--run", ranking)
    assert (outcome.code, outcome.out) == (2, "")
    assert "other.trec" in outcome.err
    assert "'7'" in outcome.err and "'q1'" in outcome.err


def test_a_bad_row_is_named_with_its_line(run: Callable, qrels: Path, first: Path):
    lines = first.read_text().splitlines()
    lines[3] = "q2 Q0 d8 1 high first"
    first.write_text("\n".join(lines) + "\n")
    outcome = run("evaluate", "--qrels", qrels, "--run", first, "--metrics", "mrr")
    assert outcome.code == 0
    warning = next(line for line in outcome.err.splitlines() if "score" in line)
    assert "first.trec" in warning and "4" in warning


@pytest.mark.parametrize(
    ("metrics", "hint"), [("ndgc@10", "ndcg@10"), ("ndcg@0", "ndcg@10"), ("r_precision@5", "")]
)
def test_an_unknown_metric_names_the_nearest(
    run: Callable, qrels: Path, first: Path, metrics: str, hint: str
):
    outcome = run("evaluate", "--qrels", qrels, "--run", first, "--metrics", metrics)
    assert outcome.code == 2
    assert len(outcome.err.splitlines()) == 1
    assert hint in outcome.err


def test_control_characters_in_the_data_do_not_reach_the_terminal(run: Callable, tmp_path: Path):
    qrels, ranking = tmp_path / "a.qrels", tmp_path / "a.trec"
    qrels.write_text("q\x1b[2J 0 d1 1\n")
    ranking.write_text("q\x1b[2J Q0 d1 1 1.0 x\n")
    outcome = run("evaluate", "--qrels", qrels, "--run", ranking, "--per-query")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out + outcome.err
    assert r"q\x1b[2J" in outcome.out


def test_wide_characters_keep_the_columns_straight(run: Callable, tmp_path: Path):
    qrels, ranking = tmp_path / "a.qrels", tmp_path / "排序.trec"
    qrels.write_text("查询一 0 d1 1\nq 0 d1 1\n")
    ranking.write_text("查询一 Q0 d1 1 1.0 x\nq Q0 d1 1 1.0 x\n")
    lines = run(
        "evaluate", "--qrels", qrels, "--run", ranking, "--metrics", "mrr", "--per-query"
    ).out.splitlines()
    wide, narrow = lines[-2], lines[-1]
    assert wide.index("scored") + 3 == narrow.index("scored")


def test_an_empty_ranking_file_is_refused(run: Callable, qrels: Path, tmp_path: Path):
    empty = tmp_path / "empty.trec"
    empty.write_text("")
    outcome = run("evaluate", "--qrels", qrels, "--run", empty)
    assert outcome.code == 2
    assert "empty.trec" in outcome.err


def test_labels_are_no_ranking(run: Callable, qrels: Path, first: Path, tmp_path: Path):
    other = tmp_path / "other.qrels"
    other.write_text("q1 0 d1 1\nq1 0 d2 0\n")
    for wrong in (qrels, other):
        outcome = run("evaluate", "--qrels", qrels, "--run", wrong)
        assert outcome.code == 2
        assert f"{wrong.name}: The file holds no ranking" in outcome.err
    outcome = run("evaluate", "--qrels", first, "--run", first)
    assert "holds no labels" in outcome.err
