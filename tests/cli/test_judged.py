"""A judge's grades beside people's labels, on every surface of files. Files that cannot be used,
copies of labels and judges of a system's maker are in `approved/cli/judge.txt`."""

import json
import math
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

import rankdash as rd
from rankdash.loading import judgements_at
from rankdash.study.decision import decision
from rankdash.study.judging import headline, verdicts
from rankdash.words.judged import judged_sentence
from rankdash.words.verdict_chips import chip
from tests.cli.drawn import DOCS, lists, rankings, truth

PEOPLE = 30
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def files(tmp_path):
    """Two rankings, labels of 30 queries, and the grades of all by a judge that errs upwards."""
    rankings(tmp_path)
    chosen = set(np.random.default_rng(1).permutation(list(lists()))[:PEOPLE])
    own = [(*pair, float(label)) for pair, label in truth().items() if pair[0] in chosen]
    table = pd.DataFrame(own, columns=["query_id", "doc_id", "label"])
    table.to_csv(tmp_path / "labels.csv", index=False)
    pairs = [(query, doc) for query, docs in lists().items() for doc in docs[:DOCS]]
    grades = np.array([float(truth().get(pair, 0)) for pair in pairs])
    wrong = np.random.default_rng(2).random(len(grades)) < 0.2
    table = pd.DataFrame(pairs, columns=["query_id", "doc_id"])
    table.assign(grade=np.minimum(grades + wrong, 3)).to_csv(tmp_path / "grades.csv", index=False)
    return tmp_path


def sides(files, *, better="old") -> list[object]:
    """`old` has the first ten as they were, so that it is the better one of the two."""
    worse = "new" if better == "old" else "old"
    return ["--qrels", files / "labels.csv", "--baseline", files / f"{worse}.trec",
            "--challenger", files / f"{better}.trec"]  # fmt: skip


def few(files, queries: int) -> None:
    """Labels of so many queries only."""
    table = pd.read_csv(files / "labels.csv")
    kept = table["query_id"].drop_duplicates()[:queries]
    table[table["query_id"].isin(set(kept))].to_csv(files / "labels.csv", index=False)


@pytest.fixture
def study(files):
    """In Python, `better` against the other; options: of `rd.study_of`."""

    def made(better="old", **options):
        worse = "new" if better == "old" else "old"
        data = rd.read(files / "labels.csv", files / f"{worse}.trec", first_stage=worse)
        run = rd.read_run(files / f"{better}.trec", data, name=better)
        judge = files / "grades.csv"
        return rd.study_of(data, run, judge=judge, **options), data, run

    return made


def test_a_comparison_says_it_in_three_ways(run, files):
    judge = ("--judge", files / "grades.csv")
    told = run("compare", *sides(files), *judge, "--format", "json").json
    assert told["judge"]["judge"] == "grades"
    found = told["judge"]["verdicts"]["old"]
    (row,) = (row for row in told["comparisons"] if row["system"] == "old")
    assert found["people"]["mean"] == pytest.approx(row["delta"])
    assert found["people"]["n"] == found["corrected"]["n"] == row["paired"]
    assert found["kind"] == "better"
    assert found["worth"] > 1
    assert found["saved"] == pytest.approx(row["paired"] * (found["worth"] - 1))
    assert told["judge"]["agreement"]["over"] > 0.1
    assert told["judge"]["agreement"]["under"] == 0
    text = run("compare", *sides(files), *judge).out
    lead = told["headline"]["old"]
    assert (lead["by"], lead["kind"]) == ("corrected", found["kind"])
    assert lead["sentence"] == text.splitlines()[0]
    note = "What follows is by people's labels only, without the judge."
    assert text.index("corrected by people: ") < text.index(note) < text.index("wider if skewed")
    first, bias, people, alone, corrected, *_ = text.splitlines()
    assert bias.startswith("Bias: the judge errs in favour of new. ")
    shown = {name: f"{found[name]['mean']:+.4f}" for name in ("people", "judge", "corrected")}
    assert first.startswith(f"old is better than new: NDCG@10 {shown['corrected']} (95%")
    assert first.endswith(f"corrected by people's labels of {found['people']['n']} queries.")
    assert people.startswith(f"people alone: {shown['people']}")
    assert alone.startswith(f"judge alone: {shown['judge']}")
    assert corrected.startswith(f"corrected by people: {shown['corrected']}")
    markdown = run("compare", *sides(files), *judge, "--format", "markdown")
    assert shown["corrected"] in markdown.out
    # Grades never become labels.
    without = run("compare", *sides(files), "--format", "json").json
    assert without["judge"] is None
    for part in ("comparisons", "caveats"):
        assert told[part] == without[part]


def test_every_surface_has_the_same_numbers(run, files, study):
    judge = ("--judge", files / "grades.csv")
    told = run("compare", *sides(files), *judge, "--json").json["judge"]["verdicts"]["old"]
    shown = f"{told['corrected']['mean']:+.4f}"
    scored = ("evaluate", files / "labels.csv", files / "new.trec", files / "old.trec", *judge)
    assert f"corrected by people: {shown}" in run(*scored).out
    assert run(*scored, "--json").json["judge"]["verdicts"]["old"] == told
    made, data, old = study()
    (found,) = verdicts(made, made.judge).values()
    assert found.three.corrected.mean == told["corrected"]["mean"]
    assert found.three.corrected.low == told["corrected"]["low"]
    again = rd.study_of(data, old, judge=made.judge)
    assert verdicts(again, again.judge)[old.id].three.corrected == found.three.corrected
    options = ("--min-gain", "0.05", "--confidence", 0.975, "--json")
    gated = run("gate", *sides(files), *judge, *options).json
    (condition,) = gated["conditions"]
    assert condition["value"] == told["corrected"]["mean"]
    assert condition["low"] == pytest.approx(told["corrected"]["low"], abs=1e-12)
    assert condition["judged"] == "corrected"
    assert gated["judge"]["verdicts"]["old"]["corrected"]["mean"] == condition["value"]
    # The report stands under it, with the section of the verdict or without.
    html = rd.report(data, old, files / "r.html", judge=files / "grades.csv").read_text()
    assert html.index(shown) < html.index("<nav>")
    assert "corrected by people" in html
    bare = rd.report(
        data, old, files / "b.html", judge=files / "grades.csv", sections=["cutoffs"]
    ).read_text()
    assert bare.index(shown) < bare.index('<section id="cutoffs">')
    assert "corrected by people" not in rd.report(data, old, files / "p.html").read_text()


def test_a_judge_alone_does_not_pass_unless_told_to_by_name(run, files):
    def gate(*options):
        judge = ("--judge", files / "grades.csv")
        return run("gate", *sides(files), "--min-gain", "0.01", *judge, *options, "--json")

    plain, trusted = gate(), gate("--trust-judge", "grades")
    # With enough of people's queries the corrected gain decides, trusted or not.
    assert plain.code == 0
    assert trusted.json["conditions"] == plain.json["conditions"]
    assert trusted.json["conditions"][0]["judged"] == "corrected"
    few(files, 9)
    told, trusted = gate(), gate("--trust-judge", "grades")
    assert (told.code, trusted.code) == (1, 0)
    (condition,) = told.json["conditions"]
    assert (condition["reason"], condition["value"]) == ("judge_alone", None)
    assert condition["message"].startswith("People labelled 9 queries")
    (condition,) = trusted.json["conditions"]
    alone = trusted.json["judge"]["verdicts"]["old"]["judge"]
    assert (condition["judged"], condition["value"]) == ("alone", alone["mean"])
    assert any("decided by the judge alone" in note for note in trusted.json["notes"])


def test_a_gain_that_the_judge_alone_has_does_not_pass(run, files):
    """A judge that likes what the challenger lifts, where people see a loss."""
    table = pd.read_csv(files / "grades.csv")
    place = table.groupby("query_id").cumcount()
    table["grade"] = np.where(place >= 5, 3.0, 0.0)
    table.to_csv(files / "grades.csv", index=False)
    asked = (*sides(files, better="new"), "--judge", files / "grades.csv", "--json")
    told = run("gate", *asked, "--min-gain", "0")
    found = told.json["judge"]["verdicts"]["new"]
    assert found["judge"]["low"] > 0
    assert found["corrected"]["high"] < 0
    assert found["favours"]["low"] > 0
    assert (told.code, told.json["conditions"][0]["reason"]) == (1, "missed")


HEAD = "query_id,doc_id,grade"
LINES = [{"query_id": "q1", "doc_id": "d1", "grade": 3, "error": ""},
         {"query_id": "q1", "doc_id": "d2", "grade": None, "error": "timeout"},
         {"query_id": "q2", "doc_id": "d1", "grade": 0.0, "error": None}]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.csv", f"{HEAD},error\nq1,d1,3,\nq1,d2,,timeout\nq2,d1,0,\n"),
        ("g.csv", f"{HEAD},error\nq1,d1,0,\nq1,d2,2,\nq1,d1,3,\nq1,d2,,timeout\nq2,d1,0,\n"),
        ("g.tsv", "query\tdocument\tgrade\terror\nq1\td1\t3\t\nq1\td2\t\ttimeout\nq2\td1\t0\t\n"),
        ("g.jsonl", "".join(f"{json.dumps(row)}\n" for row in LINES)),
        # A grade that is missing without a reason.
        ("g.csv", f"{HEAD}\nq1,d1,3\nq1,d2,\nq2,d1,0\n"),
    ],
)
def test_grades_are_read_from_files_of_several_forms(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    found, _ = judgements_at(tmp_path / name)
    assert (found.name, found.scale, found.failed) == ("g", (0, 3), 1)
    rows = found.table.sort_values(["query_id", "doc_id"]).to_numpy(dtype=object).tolist()
    assert [row[:2] for row in rows] == [["q1", "d1"], ["q1", "d2"], ["q2", "d1"]]
    assert [row[3] for row in rows] == ["", "timeout" if "timeout" in content else "no grade", ""]
    assert (rows[0][2], rows[2][2]) == (3, 0)
    assert math.isnan(rows[1][2])


def test_name_model_and_scale_are_as_the_file_says(tmp_path):
    (tmp_path / "g.csv").write_text(
        f"{HEAD},error,grades,judge,model,top\nq1,'=d1,2,,[2],Strict,gpt-4o,3\n"
        "q1,d2,0,,[0],Strict,gpt-4o,3\n"
    )
    found, _ = judgements_at(tmp_path / "g.csv")
    assert (found.name, found.model, found.scale) == ("Strict", "gpt-4o", (0, 3))
    # As spreadsheets are written, so that no cell runs.
    assert found.table["doc_id"].tolist() == ["=d1", "d2"]
    assert judgements_at(tmp_path / "g.csv", name="Mine")[0].name == "Mine"


def test_where_people_alone_prove_nothing_the_corrected_verdict_is_the_headline(files, study):
    few(files, 12)
    # So sure that the handful of people's queries does not do.
    settings = rd.StatisticsSettings(level=0.999)
    made, data, new = study("new", settings=settings)
    found = headline(made, new.id)
    assert found is not None and found.kind == "worse"
    alone = made.comparison.verdict(new.id, made.spec)
    assert alone.kind == "unproven"
    said = decision(made, new.id)
    assert (said.kind, said.step) == ("worse", "worse")
    assert decision(replace(made, judge=None), new.id).kind == "unproven"
    sentence, alone_said = judged_sentence(made, found), alone.named(made.names).sentence
    html = rd.report(data, new, files / "r.html", judge=files / "grades.csv", settings=settings)
    page = unescape(html.read_text())
    for section in ("decision", "verdict"):
        part = page[page.index(f'<section id="{section}">') :].partition("</section>")[0]
        assert part.index(chip("worse")) < part.index(sentence) < part.index(alone_said)
        assert "Elsewhere, by people alone, they are from a bootstrap" in part or (
            section == "decision"
        )
    assert page.count(sentence) == 2
    # One line leads the page.
    assert page.count("class=lead") + page.count('class="lead"') == 1
