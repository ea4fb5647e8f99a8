"""One way to say things in every command: metrics, formats, standard input and output, aliases."""

import io
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from rankdash.cli.arguments import FORMATS, Parser, UsageError
from rankdash.cli.main import COMMANDS
from rankdash.cli.rerank import add as add_rerank

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
LABELS, RUN = SAMPLE / "qrels.tsv", SAMPLE / "initial.trec"
TREC = {
    "ndcg_cut.10": "ndcg_cut_10", "ndcg_cut.20": "ndcg_cut_20", "P.5": "P_5", "map": "map",
    "recall.100": "recall_100", "recip_rank": "recip_rank", "success.1": "success_1",
    "Rprec": "Rprec",
}  # fmt: skip


def refereed(names: set[str], level: int = 1) -> dict[str, float]:
    """pytrec_eval's means over the sample."""
    labels: dict[str, dict[str, int]] = {}
    for line in LABELS.read_text(encoding="utf-8").splitlines()[1:]:
        query, doc, label = line.split()
        labels.setdefault(query, {})[doc] = int(label)
    scores: dict[str, dict[str, float]] = {}
    for line in RUN.read_text(encoding="utf-8").splitlines():
        query, _, doc, _, score, _ = line.split()
        scores.setdefault(query, {})[doc] = float(score)
    evaluator = pytrec_eval.RelevanceEvaluator(labels, names, relevance_level=level)
    values = list(evaluator.evaluate(scores).values())
    return {name: float(np.mean([each[name] for each in values])) for name in names}


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Sets what standard input holds."""

    def pipe(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return pipe


def test_a_user_of_trec_eval_types_what_he_is_used_to(run):
    done = run(
        "evaluate", "-q", "-m", "ndcg_cut.10,20", "-m", "P.5", "-m", "map", "-m", "recall.100",
        "-m", "recip_rank", "-m", "success.1", "-m", "Rprec", "--conventions", "trec_eval",
        "--json", LABELS, RUN,
    )  # fmt: skip
    found = done.json["systems"]["initial"]["mean"]
    expected = refereed(set(TREC.values()))
    assert found == pytest.approx({typed: expected[name] for typed, name in TREC.items()}, abs=1e-9)
    lines = run("evaluate", "-q", "-m", "map", LABELS, RUN).out.splitlines()
    assert lines[0].split() == ["system", "map"]
    assert sum(line.split()[:1] == ["initial"] for line in lines) == 1 + 168


def test_files_and_options_may_be_mixed(run):
    plain = run("evaluate", "--qrels", LABELS, "--run", RUN, "-m", "map")
    for arguments in (
        (LABELS, RUN, "-m", "map"),
        (LABELS, "-m", "map", RUN),
        ("--metric", "map", LABELS, RUN),
        ("--metric", "map", LABELS, "--ties", "as_ranked", RUN),
        ("--qrels", LABELS, "-m", "map", RUN),
    ):
        assert run("evaluate", *arguments) == plain
    refused = run("evaluate", LABELS, RUN, "--depth", "3")
    assert refused.code == 2
    assert "unrecognized arguments: --depth" in refused.err


def test_a_user_of_ir_measures_types_what_he_is_used_to(run):
    done = run(
        "evaluate", LABELS, RUN, "--metrics", "P(rel=2)@5,10", "AP(rel=2)", "RR(rel=2)",
        "nDCG(dcg='exp-log2')@10", "nDCG@10", "R@100", "Success@5", "Judged@10",
        "--conventions", "trec_eval", "--json",
    )  # fmt: skip
    found = done.json["systems"]["initial"]["mean"]
    expected = refereed({"P_5", "P_10", "map", "recip_rank", "ndcg_cut_10", "recall_100"}, 2)
    names = {
        "P(rel=2)@5": "P_5", "P(rel=2)@10": "P_10", "AP(rel=2)": "map", "RR(rel=2)": "recip_rank",
        "nDCG@10": "ndcg_cut_10", "R@100": "recall_100",
    }  # fmt: skip
    for typed, name in names.items():
        assert found[typed] == pytest.approx(expected[name], abs=1e-9), typed
    assert done.json["settings"]["threshold"] == 2
    assert done.json["settings"]["metrics"]["nDCG(dcg='exp-log2')@10"] == "ndcg_exp@10"
    assert done.err.splitlines()[-1] == (
        "note: rel=2 is the relevance threshold of all metrics, also of R@100, Success@5"
    )


def test_err_of_ir_measures_is_told_to_use_another_scale_and_how_to_get_it(run):
    typed = run("evaluate", LABELS, RUN, "--metrics", "ERR@20", "--highest-label", "4", "--json")
    ours = run("evaluate", LABELS, RUN, "--metrics", "err@20", "--json")

    assert "ir_measures and gdeval use 4. For their values: --highest-label 4" in typed.err
    assert "note" not in ours.err
    assert typed.json["systems"]["initial"]["mean"] != ours.json["systems"]["initial"]["mean"]


@pytest.mark.parametrize(("conventions", "first"), [("trec_eval", 1.0), ("trec_eval9", 0.5)])
def test_scores_that_differ_in_the_ninth_digit_tie_for_trec_eval_9(
    run, tmp_path, conventions, first
):
    labels, scores = tmp_path / "l.qrels", tmp_path / "r.run"
    labels.write_text("q 0 a 1\n")
    scores.write_text("q Q0 a 1 1.00000001 x\nq Q0 b 2 1.0 x\n")

    found = run("evaluate", labels, scores, "-m", "mrr", "--conventions", conventions, "--json")

    assert found.json["systems"]["r"]["mean"] == {"mrr": first}
    assert pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"recip_rank"}).evaluate(
        {"q": {"a": 1.00000001, "b": 1.0}}
    )["q"]["recip_rank"] == 0.5  # fmt: skip


METRIC = {
    "evaluate": ("--qrels", LABELS, "--run", RUN),
    "compare": (
        "--qrels",
        LABELS,
        "--baseline",
        RUN,
        "--challenger",
        "{other}",
        "--resamples",
        100,
    ),
    "gate": ("--qrels", LABELS, "--baseline", RUN, "--challenger", "{other}", "--max-hurt", "1"),
}


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another ranking of the sample: the first, backwards."""
    path = tmp_path / "other.trec"
    lines = [line.split() for line in RUN.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(f"{q} Q0 {d} 1 {-float(score)} x\n" for q, _, d, _, score, _ in lines))
    return path


@pytest.mark.parametrize("command", METRIC)
def test_metrics_are_given_alike_in_every_command(run, other, command):
    arguments = [str(each).format(other=other) for each in METRIC[command]]
    spelled = [
        ("--metric", "mrr@5,10", "--metrics", "hit@1"),
        ("--metrics", "mrr@5", "mrr@10", "--metric", "hit@1"),
        ("-m", "RR@5,10", "-m", "success.1"),
    ]
    done = [run(command, *arguments, *options) for options in spelled]
    assert [each.code for each in done] == [0, 0, 0]
    # The head of a table of `evaluate` calls a column as it was typed.
    told = [each.out.partition("\n")[2].split() for each in done]
    assert told[0] == told[1] == told[2]
    for options in (("--threshold", "2", "-m", "P(rel=1)@5"), ("-m", "P(rel=1)@5,AP(rel=2)")):
        refused = run(command, *arguments, *options)
        assert refused.code == 2
        assert "The relevance threshold is given as" in refused.err
    unknown = run(command, *arguments, "-m", "ndgc_cut.10")
    assert unknown.code == 2 and "Did you mean 'ndcg@10'?" in unknown.err


def test_the_threshold_of_a_condition_is_that_of_the_gate(run, other):
    sides = ("gate", "--qrels", LABELS, "--baseline", RUN, "--challenger", other, "--json")
    inside = run(*sides, "--min", "P(rel=2)@5=0.1", "--max-hurt", "1").json
    outside = run(*sides, "--min", "P@5=0.1", "--max-hurt", "1", "--threshold", "2").json
    assert inside == outside
    assert inside["settings"]["threshold"] == 2
    assert inside["conditions"][0]["value"] < 0.5


SIDES = "--qrels a --baseline b --challenger c"
# Commands with formats → what they need.
NEEDED = {"check": "x", "evaluate": "", "compare": SIDES, "gate": SIDES, "rerankers": ""}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_some_of_the_same_formats_and_refuses_others_with_its_own(command):
    parser = Parser(prog=command)
    import_module(f"rankdash.cli.{command}").add(parser)

    def refusal(form: str) -> str:
        with pytest.raises(UsageError) as caught:
            parser.parse_args(["--format", form])
        return str(caught.value)

    said = refusal("html")
    assert ("argument --format" in said) == (command in NEEDED)
    if command in NEEDED:
        forms = [form for form in FORMATS if repr(form) in said]
        assert {"text", "json"} <= set(forms) and ", ".join(map(repr, forms)) in said
        for form in set(FORMATS) - set(forms):
            assert all(repr(each) in refusal(form) for each in forms)
        needed = NEEDED[command].split()
        assert parser.parse_args(["--format", "table", *needed]).format == "text"
        assert parser.parse_args(["--json", *needed]).format == "json"


@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
def test_tables_for_a_text_a_paper_and_a_spreadsheet_hold_the_numbers(run, tmp_path, other, form):
    hostile = tmp_path / "=a|b_c&.trec"
    hostile.write_bytes(RUN.read_bytes())
    options = ("-m", "map", "--conventions", "trec_eval", "--format", form)
    evaluated = run("evaluate", LABELS, hostile, *options)
    compared = run(
        "compare", "--qrels", LABELS, "--baseline", hostile, "--challenger", other,
        *options, "--resamples", "100",
    )  # fmt: skip
    value = refereed({"map"})["map"]
    for done in (evaluated, compared):
        assert done.code == 0
        assert (repr(value)[:12] if form == "csv" else f"{value:.4f}") in done.out
        name = {"markdown": r"=a\|b\_c\&", "latex": r"=a\textbar{}b\_c\&", "csv": "'=a|b_c&"}[form]
        assert name in done.out
        assert "nan" not in done.out
    if form == "csv":
        head, *rows = compared.out.splitlines()
        assert head.startswith("metric,system,") and head.endswith(",confidence,ties")
        assert len(rows) == 2 and all(row.count(",") == head.count(",") for row in rows)


def test_check_and_rerankers_speak_json(run):
    checked = run("check", SAMPLE, "--json").json
    assert (checked["name"], checked["queries"]) == ("helpcentre", 168)
    assert {each["severity"] for each in checked["findings"]} <= {"error", "warning", "note"}
    listed = run("rerankers", "--json").json
    assert listed["bm25"]["settings"]["k1"]["default"] > 0
    assert "lucene" in listed["bm25"]["settings"]["method"]["choices"]


def test_the_gate_speaks_json_and_says_in_it_why_it_could_not_run(run, other, tmp_path):
    sides = ("gate", "--qrels", LABELS, "--baseline", RUN, "--challenger", other)
    file = tmp_path / "gate.json"
    failed = run(*sides, "--min-gain", "map=0", "--out", file)
    assert failed.code == 1
    found = json.loads(file.read_text())
    (condition,) = found["conditions"]
    assert found["passed"] is condition["passed"] is False
    assert (condition["kind"], condition["subject"], condition["limit"]) == ("min-gain", "map", 0.0)
    assert condition["value"] < 0 and condition["reason"] == "missed"
    assert condition["message"].startswith("It was -0.")
    assert found["settings"]["confidence"] == 0.95
    assert run(*sides, "--min-gain", "mpa=0", "--out", file).code == 2
    assert json.loads(file.read_text())["error"].startswith("There is no metric 'mpa'")


# Standard input and output.


@pytest.mark.parametrize(
    "arguments",
    [("-", RUN), (LABELS, "-"), ("--qrels", "-", "--run", RUN), ("-m", "map", "-", RUN)],
)
def test_a_file_may_come_from_standard_input(run, piped, arguments):
    labels = arguments[0] != LABELS
    piped((LABELS if labels else RUN).read_bytes())
    done = run("evaluate", *arguments, "--json")
    assert done.code == 0, done.err
    plain = run("evaluate", LABELS, RUN, *arguments[:2][: 2 * (arguments[0] == "-m")], "--json")
    name = "initial" if labels else "stdin"
    assert done.json["systems"][name] == plain.json["systems"]["initial"]


def test_standard_input_can_be_read_once(run, piped):
    piped(LABELS.read_bytes())
    refused = run("evaluate", "-", "-")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        "error: stdin: Standard input is empty. Pipe a file into the command, and write - for one "
        "file only.\n"
    )


def test_a_data_set_may_come_from_standard_input(run, piped):
    piped(b"query_id,query,doc_id,document,label,score\nq,a,d1,long text,0,2\nq,a,d2,text,1,1\n")
    done = run("check", "-")
    assert done.code == 0
    assert done.out.startswith("stdin\n")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(
        "query_id,query,doc_id,document,label,score\n"
        "q1,card,d1,parking,0,3\nq1,card,d2,pay by card,1,2\nq1,card,d3,card card,0,1\n"
    )
    return path


def test_runs_go_to_standard_output_and_aliases_mean_the_same(run, rows, tmp_path):
    arguments = ("rerank", "--data", rows, "--reranker", "bm25")
    done = run(*arguments, "--top-k", "2", "-o", "-")
    assert done.code == 0
    assert "Written: standard output" in done.err
    assert run(*arguments, "--depth", "2", "--out", tmp_path / "a.trec").code == 0
    assert done.out == (tmp_path / "a.trec").read_text()
    assert [line.split()[2] for line in done.out.splitlines()] == ["d2", "d1", "d3"]
    both = run(*arguments, "-o", "-", "--timings", "-")
    assert "The run and the timings would be written to one file" in both.err
    run(*arguments, "-o", tmp_path / "b.trec")
    fused = run("fuse", "--runs", tmp_path / "a.trec", tmp_path / "b.trec", "-o", "-")
    assert fused.code == 0
    assert fused.out.startswith("q1 Q0 d")
    assert list(tmp_path.glob("-*")) == [] and not Path("-").exists()


def test_other_names_of_options_are_understood():
    parser = Parser()
    add_rerank(parser)
    needed = ["--data", "x", "--reranker", "bm25", "-o", "y"]
    found = parser.parse_args([*needed, "--top-k", "7", "--concurrency", "1", "2"])
    assert (found.depth, found.clients, found.out) == (7, [1, 2], "y")
    found = parser.parse_args([*needed, "--depth", "7", "--clients", "1", "2"])
    assert (found.depth, found.clients) == (7, [1, 2])


def test_the_gate_writes_its_format_to_standard_output_once(run, other):
    sides = ("gate", "--qrels", LABELS, "--baseline", RUN, "--challenger", other, "--max-hurt", "1")
    done = run(*sides, "--format", "markdown", "-o", "-")
    assert done.out.startswith("## Passed")
    assert done.out.count("Passed") == 1
    refused = run(*sides, "--min", "mpa=1", "--json", "-o", "-")
    assert refused.code == 2
    assert refused.json["error"].startswith("There is no metric 'mpa'")


def test_a_report_goes_to_standard_output_with_further_metrics(run, other):
    done = run(
        "report", "--qrels", LABELS, "--baseline", RUN, "--challenger", other, "-m", "map",
        "--metric", "P(rel=2)@3", "--sections", "verdict,systems", "-o", "-", "--resamples", "100",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.out.startswith("<!DOCTYPE html>")
    assert "Precision@3" in done.out and "Written: standard output" in done.err


def test_the_level_of_confidence_has_two_names(run, other):
    sides = ("--qrels", LABELS, "--baseline", RUN, "--challenger", other, "--json")
    for command, options in (("compare", ("--resamples", "100")), ("gate", ("--max-hurt", "1"))):
        old, new = (
            run(command, *sides, *options, name, "0.8") for name in ("--level", "--confidence")
        )
        assert old.code == 0
        assert old.out == new.out
    assert run("compare", *sides, "--confidence", "0.8").json["settings"]["level"] == 0.8
