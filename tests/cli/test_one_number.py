"""The same files give the same mean in the dashboard, in every command and in Python."""

import json
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

import rankdash as rd
from rankdash.analysis.statistics.gate import parse_conditions, settings_at
from rankdash.cli.gate import check_files
from rankdash.cli.rankings import Rules
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
    from rankdash.reporting import report

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
    rules = Rules(rd.Conventions(), partial(settings_at, 0.95))
    gated = check_files(
        str(qrels), str(tied), str(other), parse_conditions(["ndcg@10=0.1"]), rules,
        timings=None, column="latency_ms",
    )  # fmt: skip
    evaluated = run("evaluate", "--qrels", qrels, "--run", tied, "--format", "json").json
    compared = run("compare", *sides, "--format", "json").json
    means = {
        "evaluate": evaluated["systems"]["first"]["mean"]["ndcg@10"],
        "compare": compared["comparisons"][0]["mean"],
        "gate": gated.study.mean(gated.study.baseline)[0],
        "report": reported(*sides),
        "report of a data set": reported("--data", qrels, tied, "--challenger", other),
        "rd.study_of": rd.study_of(data, ()).mean(FIRST_STAGE)[0],
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


@pytest.fixture
def many(tmp_path: Path) -> list[Path]:
    """Labels of more than 2,000 queries, and two rankings."""
    names = [f"q{q}" for q in range(2001)]
    files = [tmp_path / name for name in ("many.qrels", "base.trec", "up.trec")]
    files[0].write_text("".join(f"{name} 0 a 1\n" for name in names))
    files[1].write_text("".join(f"{name} Q0 b 1 2 x\n{name} Q0 a 2 1 x\n" for name in names))
    files[2].write_text(
        "".join(f"{name} Q0 {'ab'[n % 3 == 0]} 1 2 x\n{name} Q0 a{n} 2 1 x\n"
                for n, name in enumerate(names))
    )  # fmt: skip
    return files


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_with_many_queries_every_surface_takes_as_many_resamples(run, many):
    qrels, base, up = many
    sides = ("--qrels", qrels, "--baseline", base, "--challenger", up)
    options = ("--metric", "mrr@10", "--format", "json")
    told = run("compare", *sides, *options).json
    assert told["settings"]["resamples"] == 1000
    assert (
        run("compare", *sides, *options, "--resamples", "500").json["settings"]["resamples"] == 500
    )
    gated = run("gate", *sides, "--min", "mrr@10=0", "--format", "json").json
    assert gated["settings"]["resamples"] == 1000
    data = rd.read(qrels, base)
    ranked = rd.read_run(up, data)
    evaluations = {
        "base": rd.evaluate(data, metrics="mrr@10"),
        "up": rd.evaluate(data, ranked, "mrr@10"),
    }
    study = rd.study_of(data, ranked, metric="mrr@10")
    for row in (
        rd.compare(evaluations).row("up", "mrr@10"),
        study.comparison.row(ranked.id, "mrr@10"),
    ):
        assert {name: row[name] for name in ("mean", "delta", "delta_low", "delta_high", "p")} == {
            name: told["comparisons"][1][name]
            for name in ("mean", "delta", "delta_low", "delta_high", "p")
        }


def test_a_query_that_the_timings_call_failed_leaves_both_sides_though_it_is_ranked(
    run, qrels, tied, other, tmp_path
):
    timings = tmp_path / "t.json"
    states = {"q0": "failed", "q1": "skipped"}
    rows = [
        {"query_id": f"q{q}", "state": states.get(f"q{q}", "done"), "latency_ms": 5.0}
        for q in range(QUERIES)
    ]
    timings.write_text(json.dumps(rows))
    sides = ("--qrels", qrels, "--baseline", tied, "--challenger", other, "--timings", timings)
    gated = run("gate", *sides, "--min", "ndcg@10=0")
    assert "Excluded on both sides for NDCG@10: 1 failed, 1 skipped." in gated.out
    out = tmp_path / "r.html"
    assert run("report", *sides, "--out", out, "--sections", "verdict").code == 0
    assert "over 28 queries" in out.read_text("utf-8")
