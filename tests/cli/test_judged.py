"""A judge's grades with human labels, in Python; the output of commands is in
`approved/cli/judge*.txt`."""

import json
import math
from dataclasses import replace
from html import unescape

import pandas as pd
import pytest

import rankdash as rd
from rankdash.core.readers.loading import judgements_at
from rankdash.core.study.judged import headline, verdicts
from rankdash.core.words.judged import judged_sentence
from rankdash.core.words.verdicts import chip
from rankdash.features.report.decision import decision
from tests.cli.drawn import graded, rankings

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def files(tmp_path):
    """Two rankings, labels of 30 queries, and the grades of all by a judge that errs upwards."""
    rankings(tmp_path)
    graded(tmp_path)
    return tmp_path


@pytest.fixture
def study(files):
    """Return a study in Python, `better` against the other; options: of `rd.study_of`."""

    def made(better="old", **options):
        worse = "new" if better == "old" else "old"
        data = rd.read(files / "labels.csv", files / f"{worse}.trec", first_stage=worse)
        run = rd.read_run(files / f"{better}.trec", data, name=better)
        judge = files / "grades.csv"
        return rd.study_of(data, run, judge=judge, **options), data, run

    return made


def test_in_python_and_in_reports_the_verdict_is_that_of_compare(run, files, study):
    judge = ("--judge", files / "grades.csv")
    sides = ("--baseline", files / "new.trec", "--challenger", files / "old.trec")
    told = run("compare", "--qrels", files / "labels.csv", *sides, *judge, "--json").json
    corrected = told["judge"]["verdicts"]["old"]["corrected"]
    made, data, old = study()
    (found,) = verdicts(made, made.judge).values()
    assert found.three.corrected.mean == corrected["mean"]
    assert found.three.corrected.low == corrected["low"]
    again = rd.study_of(data, old, judge=made.judge)
    assert verdicts(again, again.judge)[old.id].three.corrected == found.three.corrected
    # The corrected value is above the report, with or without the section of the verdict.
    for sections, first in ((None, "<nav>"), (["cutoffs"], '<section id="cutoffs">')):
        out, file = files / "r.html", files / "grades.csv"
        html = rd.report(data, old, out, judge=file, sections=sections).read_text()
        assert html.index(f"{corrected['mean']:+.4f}") < html.index(first)
    assert "corrected with human labels" not in rd.report(data, old, files / "p.html").read_text()


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
        # A missing grade without a reason.
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
    # The sign that prevents a spreadsheet from running a cell is removed.
    assert found.table["doc_id"].tolist() == ["=d1", "d2"]


def test_where_people_alone_prove_nothing_the_corrected_verdict_is_the_headline(files, study):
    table = pd.read_csv(files / "labels.csv")
    kept = {*table["query_id"].drop_duplicates()[:12]}
    table[table["query_id"].isin(kept)].to_csv(files / "labels.csv", index=False)
    # At this level, human labels of 12 queries are not conclusive.
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
        assert "Elsewhere, intervals from human labels" in part or (section == "decision")
    assert page.count(sentence) == 2
    # The page has one lead line.
    assert page.count("class=lead") + page.count('class="lead"') == 1
