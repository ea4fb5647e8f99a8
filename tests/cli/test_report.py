"""`report`: from files to one HTML file."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rankdash.cli import main
from rankdash.reporting.report import SECTIONS
from rankdash.value.assumptions import ASSUMPTIONS
from rankdash.value.targets import Profile, Target
from tests.documented import DOCS, README, assumptions, commands

QUERIES = 24


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Labels with texts, a first stage with the relevant document second, a run that puts it first
    but failed on the last query, and how long that took."""
    rows = [
        {
            "query_id": f"q{q}", "query": f"question {q}", "doc_id": f"d{q}{d}",
            "document": f"text {q}{d}", "label": int(d == 1), "score": 9 - d,
        }
        for q in range(QUERIES)
        for d in range(4)
    ]  # fmt: skip
    (tmp_path / "shop.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "labels.qrels").write_text(
        "".join(f"q{q} 0 d{q}{d} {int(d == 1)}\n" for q in range(QUERIES) for d in range(4))
    )
    for name, order, last in (("base", (0, 1, 2, 3), 0), ("up", (1, 0, 2, 3), 1)):
        (tmp_path / f"{name}.trec").write_text(
            "".join(
                f"q{q} Q0 d{q}{d} {rank} {9 - rank} {name}\n"
                for q in range(QUERIES - last)
                for rank, d in enumerate(order, start=1)
            )
        )
    timings = [
        {
            "query_id": f"q{q}", "state": "failed" if q == QUERIES - 1 else "done",
            "reason": "HTTP 503" if q == QUERIES - 1 else "",
            "latency_ms": None if q == QUERIES - 1 else 20.0 + q,
        }
        for q in range(QUERIES)
    ]  # fmt: skip
    (tmp_path / "up.json").write_text(json.dumps(timings))
    return tmp_path


@pytest.fixture
def report(run: Callable, files: Path) -> Callable[..., tuple[int, str, str]]:
    """Runs it on the files; gives the exit code, standard error and what was written."""

    def command(*options: object, data: bool = True) -> tuple[int, str, str]:
        out = files / "out.html"
        source = ("--data", files / "shop.jsonl") if data else ("--qrels", files / "labels.qrels")
        done = run("report", *source, *options, "--out", out)
        text = out.read_text(encoding="utf-8") if out.exists() else ""
        assert done.out == ""
        return done.code, done.err, text

    return command


def test_a_profile_and_a_file_to_train_with_can_be_asked_for(report, files):
    """The first stage has the relevant document second, under one that is not relevant."""
    out = files / "train.jsonl"
    code, err, text = report(
        "--challenger", files / "base.trec", "--profile", "faq", "--hard-negatives", out,
        "--sections", "systems",
    )  # fmt: skip
    assert code == 0, err
    assert "Targets: FAQ" in text
    assert f"({QUERIES} triplets)" in err
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[3] == {"query": "question 3", "positive": "text 31", "negative": "text 30"}
    assert len(rows) == QUERIES
    assert report("--challenger", files / "base.trec", "--profile", "shop")[0] == 2


def test_targets_of_ones_own_are_said_to_be(report, files):
    own = files / "own.json"
    own.write_text(Profile("Our <b>shop</b>", (Target("mrr", target=0.4),)).to_json())
    options = ("--challenger", files / "up.trec", "--sections", "systems", "--profile")
    text = report(*options, own)[2]
    assert "Targets: Our &lt;b&gt;shop&lt;/b&gt;" in text
    assert "These targets are not the built-in ones" in text
    assert "Rules of thumb" not in text
    assert "Rules of thumb" in report(*options, "faq")[2]


def test_a_data_set_and_a_run_make_a_report(report, files):
    code, err, text = report("--challenger", files / "up.trec", "--title", "Ours", "--note", "why")
    assert code == 0
    assert "Written:" in err
    assert "<h1 dir=auto>Ours</h1>" in text
    assert "question 3" in text
    # Without timings nobody knows why q23 is missing: it counts 0.
    assert "up is better than First stage" in text
    assert " · 24 queries · " in text
    assert "no latency was measured" in text


def test_timings_tell_latency_and_what_failed(report, files):
    code, err, text = report(
        "--challenger", files / "up.trec", "--timings", files / "up.json", "--metric", "mrr@5"
    )
    assert code == 0
    assert "from 0.500 to 1.000 (+0.500), by the same amount for each of the 23 queries" in text
    assert " · 23 of 24 queries count · " in text
    assert "1 query is excluded on both sides" in text
    assert "up failed on it. HTTP 503" in text
    # It is left out, so nothing may say that it counts as 0.
    assert "lacks" not in err
    assert "23 queries timed" in text
    (files / "other.json").write_text('[{"query_id": "elsewhere", "latency_ms": 3}]')
    code, err, _ = report("--challenger", files / "up.trec", "--timings", files / "other.json")
    assert code == 2
    assert "None of the queries that were timed is in the ranking up" in err
    code, err, _ = report("--timings", files / "up.json")
    assert code == 2
    assert "1 --timings for 0 --challenger" in err


def test_labels_and_two_runs_are_enough(report, files):
    code, _, text = report(
        "--baseline", files / "base.trec", "--challenger", files / "up.trec",
        "--sections", "verdict,data", "--language", "zh", data=False,
    )  # fmt: skip
    assert code == 0
    assert '<html lang="zh">' in text
    assert "base → up" in text
    assert 'id="data"' in text
    assert 'id="cost"' not in text
    for missing in (("--baseline", files / "base.trec"), ("--challenger", files / "up.trec")):
        code, err, _ = report(*missing, data=False)
        assert code == 2
        assert "are needed too" in err


def test_a_preset_is_one_page_or_everything_and_goes_with_no_sections(report, files):
    sides = ("--challenger", files / "up.trec", "--resamples", "100")
    code, err, text = report(*sides, "--preset", "decision")
    assert code == 0
    assert re.search(rf"Written: {re.escape(str(files / 'out.html'))} \(\d+ kB, it opens in", err)
    assert re.findall(r'<section id="(\w+)"', text) == ["decision"]
    assert "of 24 queries have a relevant document in the top 10." in text
    assert "Missing: the price of up." in text
    code, err, _ = report(*sides, "--preset", "full", "--sections", "data")
    assert code == 2
    assert "--sections: not allowed with argument --preset" in err
    code, err, _ = report(*sides, "--preset", "tiny")
    assert code == 2
    assert "tiny" in err


def test_a_run_can_be_the_baseline_and_the_first_stage_is_left_alone(report, files):
    code, _, text = report("--baseline", files / "base.trec", "--challenger", files / "up.trec")
    assert code == 0
    assert "up is better than base" in text
    assert "base → up" in text


def test_a_run_in_the_folder_of_the_data_set_is_itself_and_not_the_first_stage(run, files):
    """The folder's first stage was once taken for any run in it: no change, and not a word."""
    folder, out = files / "set", files / "out.html"
    folder.mkdir()
    for name in ("labels.qrels", "base.trec", "up.trec"):
        (files / name).rename(folder / name)
    base, up = folder / "base.trec", folder / "up.trec"
    assert run("report", "--data", folder, "--challenger", up, "--out", out).code == 0
    assert "up is better than base" in out.read_text(encoding="utf-8")
    asked = ("report", "--qrels", folder, "--baseline", up, "--challenger", base, "--out", out)
    assert run(*asked).code == 0
    assert "base is worse than up" in out.read_text(encoding="utf-8")
    asked = ("evaluate", "--qrels", folder, "--run", base, "--run", up, "--metrics", "mrr@5")
    found = run(*asked, "--format", "json").json["systems"]
    means = {name: system["mean"]["mrr@5"] for name, system in found.items()}
    assert means == {"base": 0.5, "up": pytest.approx(23 / 24)}


def test_rules_and_statistics_are_obeyed(report, files):
    code, _, text = report(
        "--challenger", files / "up.trec", "--missing", "skip", "--seed", "77", "--worthwhile",
        "9", "--metric", "map",
    )  # fmt: skip
    assert code == 0
    assert '<td class="brief">77</td>' in text
    assert "but only by 100.0%, less than the minimum practically relevant gain of 900%" in text


def test_assumptions_come_from_a_file_in_the_form_of_the_docs(report, files):
    toml = assumptions().replace('"minilm"', '"up"')
    (files / "a.toml").write_text(toml)
    options = ("--challenger", files / "up.trec", "--assumptions", files / "a.toml")
    code, _, text = report(*options)
    assert code == 0
    assert "5,000" in text
    assert "Own machine" in text
    cost = text.split('id="cost"')[1].split('id="data"')[0]
    assert "At their defaults: Share of the traffic that the test set represents (100.0%)" in cost
    for broken, said in (
        (toml.replace("= 5000", "= -1"), "a.toml: Searches a day cannot be -1"),
        ("searches = 3", "a.toml: There is no assumption 'searches'"),
        ("what?", "a.toml, line 1: The assumptions cannot be read"),
        (toml.replace('"up"', '"down"'), "a.toml: The price 'down' is for no system"),
        (toml.replace('unit = "hour"', 'unit = "year"'), "a.toml: Price 1 of the list"),
        ("prices = 3", "a.toml: The file has no list called prices"),
    ):
        (files / "a.toml").write_text(broken)
        code, err, _ = report(*options)
        assert code == 2
        assert said in err


def test_the_commands_of_the_readme_and_the_docs_run(run, files, monkeypatch):
    found = [line for line in commands(README, DOCS / "cost.md") if line[0] == "report"]
    assert len(found) == 2
    (files / "assumptions.toml").write_text(assumptions())
    (files / "up.trec").rename(files / "minilm.trec")
    (files / "up.json").rename(files / "minilm.json")
    (files / "FOLDER").mkdir()
    (files / "shop.jsonl").rename(files / "FOLDER" / "shop.jsonl")
    monkeypatch.chdir(files)
    for command in found:
        assert run(*command).code == 0
        assert (files / "report.html").stat().st_size > 1_000_000
        (files / "report.html").unlink()


def test_the_help_names_every_section_and_every_assumption(capsys):
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    said = capsys.readouterr().out
    for name in (*(section.id for section in SECTIONS), *(each.name for each in ASSUMPTIONS)):
        assert re.search(rf"^  {name}\b", said, re.MULTILINE), name


def test_nothing_that_is_read_is_replaced(run, files):
    labels = (files / "shop.jsonl").read_bytes()
    done = run("report", "--data", files / "shop.jsonl", "--out", files / "shop.jsonl")
    assert done.code == 2
    assert (files / "shop.jsonl").read_bytes() == labels
    done = run("report", "--data", files / "shop.jsonl", "--out", files / "none" / "r.html")
    assert done.code == 2
    assert "There is no folder" in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--sections", "verdict", "oops"), "There is no section 'oops'"),
        (("--language", "fr"), "There is no language 'fr'"),
        (("--metric", "ndgc@10"), "ndcg"),
        (("--qrels", "x"), "not allowed with"),
        (("--logo", "{svg}"), "The logo is no picture"),
        (("--logo", "{none}"), "No such file"),
        (("--challenger", "{svg}"), "svg"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(report, files, options, said):
    (files / "logo.svg").write_text("<svg onload='alert(1)'/>")
    places = {"svg": files / "logo.svg", "none": files / "none.png"}
    code, err, text = report(*(each.format(**places) for each in options))
    assert code == 2
    assert said in err
    assert err.startswith("error: ")
    assert text == ""


def test_the_help_names_every_section(run):
    with pytest.raises(SystemExit):
        run("report", "--help")
