"""A judge's grades beside people's labels, on every surface of files."""

import json
import math
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

import rankdash as rd
from rankdash.errors import DataError
from rankdash.loading import judgements_at
from rankdash.study.decision import decision
from rankdash.study.judging import headline, verdicts
from rankdash.words.judged import judged_sentence
from rankdash.words.verdict_chips import chip
from tests.sets import SAMPLE

PEOPLE = 30


@pytest.fixture(scope="module")
def truth() -> pd.DataFrame:
    table = pd.read_csv(SAMPLE / "qrels.tsv", sep="\t", dtype=str)
    table.columns = ["query_id", "doc_id", "label"]
    return table.astype({"label": float})


@pytest.fixture
def files(tmp_path, truth):
    """Two rankings, labels of 30 queries, and a judge's grades of all."""
    lists = {}
    for line in (SAMPLE / "initial.trec").read_text().splitlines():
        query, _, doc, *_ = line.split()
        lists.setdefault(query, []).append(doc)
    for name, step in (("old", -1), ("new", 1)):
        rows = (
            f"{query} Q0 {doc} {rank} {100 - rank} {name}\n"
            for query, docs in lists.items()
            for rank, doc in enumerate(docs[:10][::step], 1)
        )
        (tmp_path / f"{name}.trec").write_text("".join(rows))
    chosen = np.random.default_rng(1).permutation(list(lists))[:PEOPLE]
    own = truth[truth["query_id"].isin(set(chosen))]
    own.to_csv(tmp_path / "labels.csv", index=False)
    known = truth.set_index(["query_id", "doc_id"])["label"]
    pairs = pd.MultiIndex.from_tuples(
        [(query, doc) for query, docs in lists.items() for doc in docs[:10]],
        names=["query_id", "doc_id"],
    )
    grades = known.reindex(pairs).fillna(0.0)
    wrong = np.random.default_rng(2).random(len(grades)) < 0.2
    table = np.minimum(grades + wrong, 3).rename("grade").reset_index()
    table.to_csv(tmp_path / "grades.csv", index=False)
    return tmp_path


def sides(files) -> list[object]:
    return [
        "--qrels", files / "labels.csv", "--baseline", files / "old.trec",
        "--challenger", files / "new.trec",
    ]  # fmt: skip


def test_a_comparison_says_it_in_three_ways(run, files) -> None:
    told = run("compare", *sides(files), "--judge", files / "grades.csv", "--format", "json")
    assert told.code == 0, told.err
    judge = told.json["judge"]
    found = judge["verdicts"]["new"]
    assert judge["judge"] == "grades"
    (row,) = (row for row in told.json["comparisons"] if row["system"] == "new")
    assert found["people"]["mean"] == pytest.approx(row["delta"])
    assert found["people"]["n"] == found["corrected"]["n"] == row["paired"]
    assert found["kind"] == "better"
    assert found["worth"] > 1
    assert found["saved"] == pytest.approx(row["paired"] * (found["worth"] - 1))
    assert judge["agreement"]["over"] > 0.1
    assert judge["agreement"]["under"] == 0
    text = run("compare", *sides(files), "--judge", files / "grades.csv").out
    assert told.json["headline"]["new"]["by"] == "corrected"
    assert told.json["headline"]["new"]["kind"] == found["kind"]
    assert told.json["headline"]["new"]["sentence"] == text.splitlines()[0]
    note = "What follows is by people's labels only, without the judge."
    assert text.index("corrected by people: ") < text.index(note) < text.index("wider if skewed")
    first, bias, people, alone, corrected, *_ = text.splitlines()
    assert bias.startswith("Bias: the judge errs in favour of old. ")
    assert first.startswith(
        f"new is better than old: NDCG@10 {found['corrected']['mean']:+.4f} (95%"
    )
    assert first.endswith(f"corrected by people's labels of {found['people']['n']} queries.")
    assert people.startswith(f"people alone: {found['people']['mean']:+.4f}")
    assert alone.startswith(f"judge alone: {found['judge']['mean']:+.4f}")
    assert corrected.startswith(f"corrected by people: {found['corrected']['mean']:+.4f}")
    markdown = run(
        "compare", *sides(files), "--judge", files / "grades.csv", "--format", "markdown"
    )
    assert f"{found['corrected']['mean']:+.4f}" in markdown.out


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_surface_has_the_same_numbers(run, files) -> None:
    options = [*sides(files), "--judge", files / "grades.csv"]
    told = run("compare", *options, "--format", "json").json["judge"]["verdicts"]["new"]
    scored = run(
        "evaluate", files / "labels.csv", files / "old.trec", files / "new.trec",
        "--judge", files / "grades.csv",
    )  # fmt: skip
    assert f"corrected by people: {told['corrected']['mean']:+.4f}" in scored.out
    scored = run(
        "evaluate", files / "labels.csv", files / "old.trec", files / "new.trec",
        "--judge", files / "grades.csv", "--format", "json",
    )  # fmt: skip
    assert scored.json["judge"]["verdicts"]["new"] == told
    data = rd.read(files / "labels.csv", files / "old.trec", first_stage="old")
    new = rd.read_run(files / "new.trec", data, name="new")
    study = rd.study_of(data, new, judge=files / "grades.csv")
    (found,) = verdicts(study, study.judge).values()
    assert found.three.corrected.mean == told["corrected"]["mean"]
    assert found.three.corrected.low == told["corrected"]["low"]
    again = rd.study_of(data, new, judge=study.judge)
    assert verdicts(again, again.judge)[new.id].three.corrected == found.three.corrected
    gate = run("gate", *options, "--min-gain", "0.05", "--confidence", 0.975, "--format", "json")
    (condition,) = gate.json["conditions"]
    assert condition["value"] == told["corrected"]["mean"]
    assert condition["low"] == pytest.approx(told["corrected"]["low"], abs=1e-12)
    assert condition["judged"] == "corrected"
    assert gate.json["judge"]["verdicts"]["new"]["corrected"]["mean"] == condition["value"]


def test_grades_never_become_labels(run, files) -> None:
    with_judge, without = (
        run("compare", *sides(files), *judge, "--format", "json").json
        for judge in (["--judge", files / "grades.csv"], [])
    )
    assert without["judge"] is None
    assert with_judge["comparisons"] == without["comparisons"]
    assert with_judge["caveats"] == without["caveats"]


def few(files, queries: int):
    """The files with labels of so many queries only."""
    table = pd.read_csv(files / "labels.csv")
    kept = table["query_id"].drop_duplicates()[:queries]
    table[table["query_id"].isin(set(kept))].to_csv(files / "labels.csv", index=False)


def gate(run, files, *options):
    return run("gate", *sides(files), "--min-gain", "0.01", *options, "--format", "json")


def test_a_judge_alone_does_not_pass_unless_told_to_by_name(run, files) -> None:
    judge = ["--judge", files / "grades.csv"]
    assert gate(run, files, *judge).code == 0
    few(files, 9)
    told = gate(run, files, *judge)
    assert told.code == 1
    (condition,) = told.json["conditions"]
    assert condition["reason"] == "judge_alone"
    assert condition["value"] is None
    assert condition["message"].startswith("People labelled 9 queries")
    trusted = gate(run, files, *judge, "--trust-judge", "grades")
    assert trusted.code == 0
    (condition,) = trusted.json["conditions"]
    alone = trusted.json["judge"]["verdicts"]["new"]["judge"]
    assert (condition["judged"], condition["value"]) == ("alone", alone["mean"])
    assert any("decided by the judge alone" in note for note in trusted.json["notes"])


def test_trust_does_not_set_people_aside(run, files) -> None:
    """With enough of people's queries the corrected gain decides, trusted or not."""
    judge = ["--judge", files / "grades.csv"]
    plain, trusted = gate(run, files, *judge), gate(run, files, *judge, "--trust-judge", "grades")
    assert trusted.json["conditions"] == plain.json["conditions"]
    assert trusted.json["conditions"][0]["judged"] == "corrected"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--judge", "grades.csv", "--trust-judge", "gpt"], "but the judge is 'grades'"),
        (["--trust-judge", "gpt"], "but there is no judge"),
        (["--judge", "nothing.csv"], "nothing.csv"),
        (["--judge", "./labels.csv"], "labels.csv: The grades of the judge are people's labels"),
    ],
)
def test_what_cannot_be_is_refused(run, files, monkeypatch, options, said: str) -> None:
    monkeypatch.chdir(files)
    told = gate(run, files, *options)
    assert told.code == 2
    assert said in told.err
    assert told.err.count("\n") == 1


def test_a_gain_that_the_judge_alone_has_does_not_pass(run, files, truth) -> None:
    """A judge that likes what the challenger lifts, where people see a loss."""
    table = pd.read_csv(files / "grades.csv")
    place = table.groupby("query_id").cumcount()
    table["grade"] = np.where(place >= 5, 3.0, 0.0)
    table.to_csv(files / "grades.csv", index=False)
    turned = [
        "--qrels", files / "labels.csv", "--baseline", files / "new.trec",
        "--challenger", files / "old.trec", "--judge", files / "grades.csv",
    ]  # fmt: skip
    told = run("gate", *turned, "--min-gain", "0", "--format", "json")
    found = told.json["judge"]["verdicts"]["old"]
    assert found["judge"]["low"] > 0
    assert found["corrected"]["high"] < 0
    assert told.code == 1
    assert told.json["conditions"][0]["reason"] == "missed"
    assert found["favours"]["low"] > 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_report_stands_under_the_corrected_verdict(files) -> None:
    data = rd.read(files / "labels.csv", files / "old.trec", first_stage="old")
    new = rd.read_run(files / "new.trec", data, name="new")
    study = rd.study_of(data, new, judge=files / "grades.csv")
    (found,) = verdicts(study, study.judge).values()
    shown = f"{found.three.corrected.mean:+.4f}"
    html = rd.report(data, new, files / "r.html", judge=files / "grades.csv").read_text()
    assert html.index(shown) < html.index("<nav>")
    assert "corrected by people" in html
    bare = rd.report(
        data, new, files / "b.html", judge=files / "grades.csv", sections=["cutoffs"]
    ).read_text()
    assert bare.index(shown) < bare.index('<section id="cutoffs">')
    plain = rd.report(data, new, files / "p.html").read_text()
    assert "corrected by people" not in plain


HEAD = "query_id,doc_id,grade"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.csv", f"{HEAD},error\nq1,d1,3,\nq1,d2,,timeout\nq2,d1,0,\n"),
        ("g.csv", f"{HEAD},error\nq1,d1,0,\nq1,d2,2,\nq1,d1,3,\nq1,d2,,timeout\nq2,d1,0,\n"),
        ("g.tsv", "query\tdocument\tgrade\terror\nq1\td1\t3\t\nq1\td2\t\ttimeout\nq2\td1\t0\t\n"),
        (
            "g.jsonl",
            "".join(
                json.dumps(row) + "\n"
                for row in (
                    {"query_id": "q1", "doc_id": "d1", "grade": 3, "error": ""},
                    {"query_id": "q1", "doc_id": "d2", "grade": None, "error": "timeout"},
                    {"query_id": "q2", "doc_id": "d1", "grade": 0.0, "error": None},
                )
            ),
        ),
    ],
)
def test_grades_are_read_from_files_of_several_forms(tmp_path, name, content) -> None:
    (tmp_path / name).write_text(content)
    found, _ = judgements_at(tmp_path / name)
    assert found.name == "g"
    assert found.scale == (0, 3)
    rows = found.table.sort_values(["query_id", "doc_id"]).to_numpy(dtype=object).tolist()
    assert [row[:2] for row in rows] == [["q1", "d1"], ["q1", "d2"], ["q2", "d1"]]
    assert [row[3] for row in rows] == ["", "timeout", ""]
    assert (rows[0][2], rows[2][2]) == (3, 0)
    assert math.isnan(rows[1][2])


def test_a_grade_that_is_missing_without_a_reason_is_a_failure(tmp_path) -> None:
    (tmp_path / "g.csv").write_text(f"{HEAD}\nq1,d1,1\nq1,d2,\n")
    found, _ = judgements_at(tmp_path / "g.csv")
    assert found.failed == 1
    assert found.table["error"].tolist() == ["", "no grade"]
    assert found.scale == (0, 1)


def test_name_model_and_scale_are_as_the_file_says(tmp_path) -> None:
    (tmp_path / "g.csv").write_text(
        f"{HEAD},error,grades,judge,model,top\nq1,'=d1,2,,[2],Strict,gpt-4o,3\nq1,d2,0,,[0],Strict,gpt-4o,3\n"
    )
    found, _ = judgements_at(tmp_path / "g.csv")
    assert (found.name, found.model, found.scale) == ("Strict", "gpt-4o", (0, 3))
    # As spreadsheets are written, so that no cell runs.
    assert found.table["doc_id"].tolist() == ["=d1", "d2"]
    assert judgements_at(tmp_path / "g.csv", name="Mine")[0].name == "Mine"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("query_id,grade\nq1,1\n", "no column of doc_id"),
        ("query_id,doc_id,text\nq1,d1,hello there\n", "no column of grade"),
        (f"{HEAD}\nq1,d1,good one\nq1,d2,2\n", "line 2"),
        (f"{HEAD}\nq1,d1,1\n,d2,2\n", "line 3"),
        (f"{HEAD},error\nq1,d1,,timeout\n", "holds no grades"),
        (f"{HEAD},judge\nq1,d1,1,A\nq1,d2,1,B\n", "several judges: A, B"),
        (f"{HEAD},top\nq1,d1,5,3\n", "outside of its scale from 0 to 3"),
        ("", "empty"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(run, files, content, said: str) -> None:
    (files / "bad.csv").write_text(content)
    with pytest.raises(DataError):
        judgements_at(files / "bad.csv")
    told = run("compare", *sides(files), "--judge", files / "bad.csv")
    assert told.code == 2
    assert said in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("copied", [True, False])
def test_a_copy_of_the_labels_is_no_judge(run, files, copied) -> None:
    """Under another name, whether or not it grades other queries too."""
    own = pd.read_csv(files / "labels.csv").rename(columns={"label": "grade"})
    if not copied:
        own.loc[own.index[5], "grade"] += 1
    own.to_csv(files / "copy.csv", index=False)
    warning = f"The judge's grades are people's labels on all {len(own)} pairs"
    options = ["--qrels", files / "labels.csv", "--judge", files / "copy.csv"]
    for told in (
        run("judge", "agreement", *options).out,
        run("compare", *sides(files), "--judge", files / "copy.csv").out,
    ):
        assert (f"Warning: {warning}" in told) == copied
    told = run("judge", "agreement", "--qrels", files / "copy.csv", "--judge", files / "copy.csv")
    assert told.code == 2
    assert "both are the same file" in told.err
    told = run("judge", "agreement", *options, "--json").json
    assert told[0]["copied"] == copied


def other_way(files) -> None:
    """People's labels prove nothing alone, which the judge's grades beside them do."""
    table = pd.read_csv(files / "labels.csv")
    kept = table["query_id"].drop_duplicates()[:12]
    table[table["query_id"].isin(set(kept))].to_csv(files / "labels.csv", index=False)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_where_people_alone_prove_nothing_the_corrected_verdict_is_the_headline(run, files) -> None:
    other_way(files)
    data = rd.read(files / "labels.csv", files / "new.trec", first_stage="new")
    old = rd.read_run(files / "old.trec", data, name="old")
    # So sure that the handful of people's queries does not do.
    settings = rd.StatisticsSettings(level=0.999)
    study = rd.study_of(data, old, judge=files / "grades.csv", settings=settings)
    found = headline(study, old.id)
    assert found is not None and found.kind == "worse"
    alone = study.comparison.verdict(old.id, study.spec)
    assert alone.kind == "unproven"
    said = decision(study, old.id)
    assert (said.kind, said.step) == ("worse", "worse")
    assert decision(replace(study, judge=None), old.id).kind == "unproven"
    sentence, alone_said = judged_sentence(study, found), alone.named(study.names).sentence
    html = rd.report(
        data, old, files / "r.html", judge=files / "grades.csv", settings=settings
    ).read_text()
    page = unescape(html)
    for section in ("decision", "verdict"):
        part = page[page.index(f'<section id="{section}">') :].partition("</section>")[0]
        assert part.index(chip("worse")) < part.index(sentence)
        assert part.index(sentence) < part.index(alone_said)
        assert "Elsewhere, by people alone, they are from a bootstrap" in part or (
            section == "decision"
        )
    assert page.count(sentence) == 2
    # One line leads the page.
    assert page.count("class=lead") + page.count('class="lead"') == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
def test_a_judge_of_the_same_maker_is_warned_of_where_the_verdict_is(run, files, model) -> None:
    (files / "new.trec").rename(files / "gpt-4.1.trec")
    pd.read_csv(files / "grades.csv").assign(model=model).to_csv(files / "grades.csv", index=False)
    warning = "Warning: grades and gpt-4.1 share a maker, OpenAI"
    options = [
        "--qrels", files / "labels.csv", "--baseline", files / "old.trec",
        "--challenger", files / "gpt-4.1.trec", "--judge", files / "grades.csv",
    ]  # fmt: skip
    told = run("compare", *options).out
    verdict = run("gate", *options, "--min-gain", "0.01").out
    data = rd.read(files / "labels.csv", files / "old.trec", first_stage="old")
    new = rd.read_run(files / "gpt-4.1.trec", data, name="gpt-4.1")
    page = rd.report(data, new, files / "r.html", judge=files / "grades.csv").read_text()
    first = page[: page.index("<nav>")]
    for text in (told, verdict, first, page[page.index('<section id="verdict">') :]):
        assert (warning in text) == (model == "gpt-4o")
