"""The same files give the same mean in the dashboard, in every command and in Python."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

import rankdash as rd
from rankdash.analysis.statistics.gate import parse_conditions, settings_at
from rankdash.cli.gate import check_files
from rankdash.loading import Loaded, load
from rankdash.readers import sources_at
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of

QUERIES = 30


def lists() -> dict[str, dict[str, float]]:
    """Query → document → score, of which most are tied."""
    rng = np.random.default_rng(5)
    return {
        f"q{q}": {f"d{d}": float(rng.integers(0, 4)) + 0.5 for d in rng.permutation(40)[:20]}
        for q in range(QUERIES)
    }


def labels() -> dict[str, dict[str, int]]:
    rng = np.random.default_rng(6)
    return {
        f"q{q}": {"d0": 1} | {f"d{d}": int(rng.integers(0, 3)) for d in range(1, 40)}
        for q in range(QUERIES)
    }


@pytest.fixture
def qrels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.qrels"
    rows = [f"{q} 0 {d} {label}\n" for q, found in labels().items() for d, label in found.items()]
    path.write_text("".join(rows))
    return path


@pytest.fixture(params=["trec", "csv"])
def tied(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    rows = [(q, d, score) for q, found in lists().items() for d, score in found.items()]
    path = tmp_path / f"first.{request.param}"
    if request.param == "trec":
        path.write_text("".join(f"{q} Q0 {d} 1 {score} x\n" for q, d, score in rows))
    else:
        body = "".join(f"{q},{d},{score}\n" for q, d, score in rows)
        path.write_text(f"query_id,doc_id,score\n{body}")
    return path


@pytest.fixture
def other(tmp_path: Path) -> Path:
    path = tmp_path / "other.trec"
    path.write_text("".join(f"q{q} Q0 d{d} 1 {-d} x\n" for q in range(QUERIES) for d in range(9)))
    return path


def in_the_dashboard(loaded: Loaded) -> float:
    """The mean of the first stage, as the pages have it without a choice of rules."""
    study = Study.on(
        "ndcg@10",
        dataset=loaded.dataset,
        systems=systems_of(loaded.dataset, loaded.runs),
        baseline=FIRST_STAGE,
        challengers=tuple(run.id for run in loaded.runs),
    )
    return study.mean(FIRST_STAGE)[0]


@pytest.fixture
def reported(run, tmp_path, monkeypatch):
    """The mean of the baseline in the report of a command."""
    from rankdash.cli import report

    def command(*arguments: object) -> float:
        seen = []
        real = report.html
        monkeypatch.setattr(
            report, "html", lambda study, front: seen.append(study) or real(study, front)
        )
        out = tmp_path / "r.html"
        done = run("report", *arguments, "--sections", "systems", "rules", "--out", out)
        assert done.code == 0, done.err
        assert "own rule" in out.read_text("utf-8")
        return seen[0].mean(seen[0].baseline)[0]

    return command


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_file_with_ties_has_one_mean(run, reported, qrels, tied, other):
    referee = pytrec_eval.RelevanceEvaluator(labels(), {"ndcg_cut_10"}).evaluate(lists())
    expected = np.mean([each["ndcg_cut_10"] for each in referee.values()])
    shown = in_the_dashboard(load(sources_at([qrels, tied, other]), first_stage=tied.name))
    assert shown == pytest.approx(expected, abs=1e-12)

    sides = ("--qrels", qrels, "--baseline", tied, "--challenger", other)
    data = rd.read(qrels, tied)
    gated = check_files(
        str(qrels), str(tied), str(other), parse_conditions(["ndcg@10=0.1"]), rd.Conventions(),
        settings_at(0.95), conflict="highest", timings=None, column="latency_ms",
    )  # fmt: skip
    evaluated = run("evaluate", "--qrels", qrels, "--run", tied, "--format", "json").json
    compared = run("compare", *sides, "--format", "json").json
    means = {
        "evaluate": evaluated["systems"]["first"]["mean"]["ndcg@10"],
        "compare": compared["comparisons"][0]["mean"],
        "gate": float(gated.comparison.row("first", "ndcg@10")["mean"]),
        "report": reported(*sides),
        "report of a data set": reported("--data", qrels, tied, "--challenger", other),
        "rd.evaluate": rd.evaluate(data).mean("ndcg@10"),
        "rd.read_run": rd.evaluate(data, rd.read_run(tied, data)).mean("ndcg@10"),
    }
    assert means == dict.fromkeys(means, shown)
    assert evaluated["settings"]["ties"] == compared["settings"]["ties"] == "as_ranked"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_order_that_rankdash_made_has_one_mean(reported, tmp_path, other):
    """Texts that are the same share a score of BM25, and the order of the rows settles it."""
    rows = [
        {"query_id": f"q{q}", "query": "pay by card", "doc_id": f"d{d}",
         "document": "pay by card" if d % 2 else "parking", "label": int(d == 1 + 2 * (q % 3))}
        for q in range(QUERIES)
        for d in range(9)
    ]  # fmt: skip
    file = tmp_path / "shop.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = rd.read(file)
    shown = in_the_dashboard(load(sources_at([file])))
    assert shown != rd.evaluate(data, conventions=rd.Conventions(ties="trec")).mean("ndcg@10")
    assert rd.evaluate(data).mean("ndcg@10") == shown
    assert reported("--data", file, "--challenger", other) == shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "Ties: by the ranking's own rule (files: document id, descending)."),
        (("--ties", "as_ranked"), "Ties: by the ranking's own rule (files: document id, desc"),
        (("--ties", "stable"), "Ties: in the order given."),
        (("--ties", "trec", "--threshold", "2"), "as trec_eval does; Relevant from: 2.0."),
    ],
)
def test_every_output_says_the_rules_in_force(run, qrels, tmp_path, other, options, said):
    tied = tmp_path / "first.trec"
    tied.write_text("".join(f"q{q} Q0 d{d} 1 1 x\n" for q in range(QUERIES) for d in range(3)))
    sides = ("--qrels", qrels, "--baseline", tied, "--challenger", other, *options)
    assert said in run("evaluate", "--qrels", qrels, "--run", tied, *options).out
    for form in ("table", "markdown", "latex"):
        assert said in run("compare", *sides, "--format", form).out.replace("\\", "")
    for form in ("text", "markdown", "junit"):
        done = run("gate", *sides, "--min", "ndcg@10=0", "--format", form)
        assert said in done.out.replace("\\", ""), form
    rule = dict(zip(options[::2], options[1::2], strict=True)).get("--ties", "as_ranked")
    for per_query in ((), ("--per-query",)):
        asked = ("evaluate", "--qrels", qrels, "--run", tied, "--format", "csv", *per_query)
        head, first, *_rest = run(*asked, *options).out.splitlines()
        assert (head.split(",")[-1], first.split(",")[-1]) == ("ties", rule)
