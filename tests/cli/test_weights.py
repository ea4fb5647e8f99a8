"""Means per search on the command line: the numbers, their name in each output, and refusals."""

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.shipped import SAMPLES, runs_of
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import import_workspace
from rankdash.kit.html.tables import write_run

FOLDER = SAMPLES["en"]
WEIGHTED = ("--weights", "per search")
NAMED = "NDCG@10 per search"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return paths of the ranking of a reranker, of frequencies, and of equal frequencies."""
    folder = tmp_path_factory.mktemp("weights")
    workspace = Workspace(folder / "home")
    import_workspace.bring_in(workspace, runs_of(FOLDER), "the sample")
    row = next(each for each in workspace.runs() if each.name == "bge-small")
    write_run(workspace.run(row.id).ranking, folder / "bge.trec", "bge")
    queries = pd.read_json(FOLDER / "queries.jsonl", lines=True)["_id"]
    table = pd.DataFrame({"query_id": queries})
    table["frequency"] = [round(300 / place**0.5) for place in range(1, len(table) + 1)]
    table["stratum"] = ["head"] * 30 + ["torso"] * 60 + ["tail"] * (len(table) - 90)
    table["probability"] = table["stratum"].map({"head": 1.0, "torso": 0.5, "tail": 0.1})
    table.to_csv(folder / "counts.csv", index=False)
    table[["query_id"]].assign(frequency=7).to_csv(folder / "equal.csv", index=False)
    return folder


def compared(run, files, *options, command="compare"):
    sides = ("--qrels", FOLDER / "qrels.tsv", "--baseline", FOLDER / "initial.trec")
    return run(command, *sides, "--challenger", files / "bge.trec", *options)


def weighted(files):
    return (*WEIGHTED, "--frequencies", files / "counts.csv")


def test_evaluate_has_the_weighted_mean_of_its_own_values(run, files):
    runs = (FOLDER / "qrels.tsv", FOLDER / "initial.trec", files / "bge.trec")
    done = run("evaluate", *runs, "-m", "ndcg@10,mrr@10", *weighted(files), "--json")
    content = json.loads(done.out)
    assert content["settings"]["weights"] == "per search"
    counts = pd.read_csv(files / "counts.csv").set_index("query_id")
    searches = counts["frequency"] / counts["probability"]
    for system in content["systems"].values():
        for spec, mean in system["mean"].items():
            values = {query: each[spec] for query, each in system["per_query"].items()}
            expected = np.average(list(values.values()), weights=searches[list(values)])
            assert mean == pytest.approx(expected, abs=1e-12)
    table = run("evaluate", *runs, "-m", "ndcg@10", *weighted(files), "--format", "csv").out
    assert [row["weights"] for row in csv.DictReader(io.StringIO(table))] == ["per search"] * 2
    for form in ("text", "markdown", "latex"):
        shown = run("evaluate", *runs, "-m", "ndcg@10", *weighted(files), "--format", form).out
        assert "Weights: every query counts for its searches" in shown


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_each_table_of_compare_names_the_weights(run, files, form):
    shown = compared(run, files, *weighted(files), "--format", form).out
    assert NAMED in shown and "every query counts for its searches" in shown
    assert "NDCG@10" not in re.sub(NAMED, "", shown)


def test_json_and_csv_name_the_weights_and_have_no_certificate(run, files):
    content = json.loads(compared(run, files, *weighted(files), "--json").out)
    assert content["settings"]["weights"] == "per search"
    assert content["certificate"] is None
    assert NAMED in content["headline"]["bge"]["sentence"]
    rows = list(
        csv.DictReader(io.StringIO(compared(run, files, *weighted(files), "--format", "csv").out))
    )
    assert {row["weights"] for row in rows} == {"per search"}
    assert rows[1]["more_queries"] == ""


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit"])
def test_gate_names_the_weights(run, files, form):
    options = ("--min-gain", "ndcg@10=0.01", "--format", form)
    shown = compared(run, files, *options, *weighted(files), command="gate").out
    assert "per search" in shown or "every query counts for its searches" in shown


def test_equal_frequencies_change_no_number(run, files):
    def numbers(*options):
        content = json.loads(compared(run, files, *options, "-m", "ndcg@10,mrr@10", "--json").out)
        return [
            {key: value for key, value in row.items() if key not in ("verdict",)}
            for row in content["comparisons"]
        ]

    equal = (*WEIGHTED, "--frequencies", files / "equal.csv")
    assert numbers(*equal)[0] == numbers()[0]
    assert numbers(*equal) == numbers()


def test_a_small_effective_number_of_queries_gives_no_verdict(run, files):
    table = pd.read_csv(files / "equal.csv")
    table.loc[:2, "frequency"] = 5_000
    table.to_csv(files / "skewed.csv", index=False)
    skewed = (*WEIGHTED, "--frequencies", files / "skewed.csv")
    content = json.loads(compared(run, files, *skewed, "--json").out)
    first, second = content["comparisons"][:2]
    assert 3 < first["n_effective"] < 4 and 3 < second["paired_effective"] < 4
    assert second["verdict"]["kind"] == content["headline"]["bge"]["kind"] == "too_few"
    assert second["delta_low"] is second["mean_low"] is second["p"] is None
    assert "their effective number is 3." in second["verdict"]["sentence"]
    assert second["smallest_detectable"] is None
    text = compared(run, files, *skewed).out
    assert "at least 6 are needed. Label more queries, or use the weights “per query”." in text
    for option in ("--min", "--min-gain"):
        gate = compared(
            run, files, option, "ndcg@10=0.01", "--format", "json", *skewed, command="gate"
        )
        (condition,) = json.loads(gate.out)["conditions"]
        assert gate.code == 1 and condition["reason"] == "too_few" and condition["low"] is None
        assert "effective number is 3." in condition["message"]
    report = files / "skewed.html"
    assert compared(run, files, *skewed, "--out", report, command="report").code == 0
    assert "Label more queries, or use the weights" in report.read_text()


def test_a_table_of_frequencies_alone_changes_nothing(run, files):
    plain = compared(run, files).out
    assert compared(run, files, "--frequencies", files / "counts.csv").out == plain


@pytest.mark.parametrize(
    ("command", "options", "reason"),
    [
        ("compare", WEIGHTED, "no column frequency"),
        ("compare", ("--test", "wilcoxon"), "Wilcoxon"),
        ("compare", ("--interval", "bca"), "BCa"),
        ("gate", ("--max-hurt", "ndcg@10=0.3"), "--max-hurt is a share of queries"),
        ("policy", ("--depth", "5"), "not per search"),
    ],
)
def test_what_has_no_version_per_search_is_refused_in_words(run, files, command, options, reason):
    added = options if options == WEIGHTED else (*options, *weighted(files))
    done = compared(run, files, *added, command=command)
    assert done.code == 2 and reason in done.err
    assert done.out == "" or command == "gate"


def test_a_query_without_a_frequency_is_named(run, files):
    table = pd.read_csv(files / "counts.csv").iloc[1:]
    table.to_csv(files / "short.csv", index=False)
    done = compared(run, files, *WEIGHTED, "--frequencies", files / "short.csv")
    assert done.code == 2 and "1 of 168, such as 'q01'" in done.err


def test_verify_refuses_a_report_of_means_per_search_in_words(run, files):
    compared_json, report = files / "compare.json", files / "report.html"
    compared_json.write_text(compared(run, files, *weighted(files), "--json").out)
    made = compared(run, files, *weighted(files), "--out", report, command="report")
    assert made.code == 0
    for file in (compared_json, report):
        done = run("verify", file, "--qrels", FOLDER / "qrels.tsv", "--run", files / "bge.trec")
        assert done.code == 2 and "means per search, for example, have none" in done.err
