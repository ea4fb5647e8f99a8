"""`verify` on files: reports and comparisons that are correct, changed, or of other files."""

import json
import re
import shutil

import pytest

from rankdash.core.study import certificate
from rankdash.features.report import report as reports
from rankdash.features.report import report_zip
from tests.cli.drawn import answers, graded, next_pairs, plan, rankings
from tests.sets import SAMPLE
from tests.study.certified import SETTINGS, by_docs, resealed, study_of

QRELS, FIRST = SAMPLE / "qrels.tsv", SAMPLE / "initial.trec"


@pytest.fixture
def files(tmp_path):
    """Write two rankings, one with timings of failed queries, and return the folder."""
    lines = FIRST.read_text().splitlines()
    queries = list(dict.fromkeys(line.split()[0] for line in lines))
    for name, step in (("one", 2), ("two", 3)):
        rows = []
        for query in queries:
            docs = [line.split()[2] for line in lines if line.split()[0] == query]
            order = [*docs[::step], *(doc for doc in docs if doc not in docs[::step])]
            rows += [f"{query} Q0 {doc} {at} {-at} {name}" for at, doc in enumerate(order, 1)]
        (tmp_path / f"{name}.trec").write_text("\n".join(rows))
    times = [
        {"query_id": q, "state": "failed" if at % 9 == 0 else "done", "reason": "", "latency_ms": 5}
        for at, q in enumerate(queries)
    ]
    (tmp_path / "one.json").write_text(json.dumps(times))
    return tmp_path


@pytest.fixture
def report(run, files):
    """Write the report, and return its file."""
    file = files / "r.html"
    sides = ("--baseline", FIRST, "--challenger", files / "one.trec", files / "two.trec")
    times = ("--timings", files / "one.json", files / "one.json")
    assert run("report", "--qrels", QRELS, *sides, *times, "--out", file).code == 0
    return file


def inputs(files, *rankings, times=True):
    named = [FIRST, *(files / f"{each}.trec" for each in rankings)]
    timings = ("--timings", *[files / "one.json"] * len(rankings)) if times else ()
    return ("--qrels", QRELS, "--run", *named, *timings)


def forged(report, old, new, *, every=True, new_hash=True):
    """Return the report with another text, everywhere or at its first occurrence."""
    content, document = certificate.opened(report.read_bytes())
    changed, count = re.subn(old.encode(), new.encode(), document, count=0 if every else 1)
    assert count
    if new_hash:
        content |= {"document": certificate.sha256(changed)}
        content = json.loads(resealed(json.dumps(content)))
    start, end = certificate.EMPTY.split("><")
    text = certificate.canonical(content).replace(b"<", b"\\u003c").decode()
    return changed.replace(certificate.EMPTY.encode(), f"{start}>{text}<{end}".encode())


def test_a_report_is_checked_against_its_files(run, files, report):
    found = run("verify", report, *inputs(files, "two", "one"))
    assert found.code == 0, found.out
    assert found.out.splitlines()[-1].startswith("PASSED (")
    assert not by_docs(report.read_bytes(), files)
    shown = run("verify", report, *inputs(files, "one", "two"), "--json").json
    assert shown["passed"]
    assert all(each["ok"] for each in shown["checks"])
    assert any("latency" in each for each in shown["not_covered"])


def test_other_files_are_refused(run, files, report):
    for lacking in (inputs(files, "one"), inputs(files, "one", "two", times=False)):
        found = run("verify", report, *lacking)
        assert found.code == 1
        assert re.search("^refused  ranking of .*: no file has this ranking", found.out, re.M)
    labels = files / "labels.tsv"
    text = QRELS.read_text()
    labels.write_text(text[: text.rindex("\n", 0, -1)])
    other = [labels if each == QRELS else each for each in inputs(files, "one", "two")]
    assert "refused  labels" in run("verify", report, *other).out


@pytest.mark.parametrize("new_hash", [False, True])
def test_a_changed_number_on_the_page_is_refused(run, files, report, new_hash):
    content, _document = certificate.opened(report.read_bytes())
    shown = content["numbers"]["ndcg@10"][1]["delta"][1]
    report.write_bytes(forged(report, re.escape(shown), "+0.999", new_hash=new_hash))
    found = run("verify", report, *inputs(files, "one", "two"))
    assert found.code == 1
    wanted = (
        "refused  printed leaderboard: “+0.999”, computed"
        if new_hash
        else "refused  hash of the report"
    )
    assert wanted in found.out
    assert by_docs(report.read_bytes(), files)


def test_the_json_of_compare_is_checked(run, files):
    file = files / "c.json"
    sides = ("--baseline", FIRST, "--challenger", files / "one.trec", "-m", "ndcg@10,mrr@10")
    found = run("compare", "--qrels", QRELS, *sides, "--correction", "bh", "--json")
    file.write_text(found.out)
    checked = run("verify", file, *inputs(files, "one", times=False))
    assert checked.code == 0, checked.out
    assert not by_docs(file.read_bytes(), files)
    for new_hash, field, value in ((False, "delta", 0.1), (True, "delta", 0.1), (True, "p", None)):
        document = found.json
        document["comparisons"][1][field] = value
        if new_hash:
            content = document.pop("certificate")
            content["document"] = certificate.sha256(certificate.canonical(document))
            document["certificate"] = json.loads(resealed(json.dumps(content)))
        file.write_text(json.dumps(document))
        checked = run("verify", file, *inputs(files, "one", times=False))
        assert checked.code == 1
        assert ("refused  printed JSON" in checked.out) == new_hash
        assert by_docs(file.read_bytes(), files)


def with_twin(rows):
    return [{**rows[1], "delta": 0.3}, *rows]


FORGERIES = {
    "headline sentence": lambda d: d["headline"]["one"].update(sentence="one is better."),
    "headline kind": lambda d: d["headline"]["one"].update(kind="better"),
    "sentence of a row": lambda d: d["comparisons"][1]["verdict"].update(sentence="one wins"),
    "order": lambda d: d["leaderboard"].reverse(),
    "caveats": lambda d: d["caveats"].update(one=[]),
    "relative change": lambda d: d["comparisons"][1].update(relative_delta=0.3),
    "effect size": lambda d: d["comparisons"][1].update(effect_size=3.0),
    "missing": lambda d: d["comparisons"][1].update(missing=7),
    "excluded": lambda d: d["comparisons"][1].update(left_out={}),
    "level": lambda d: d["settings"].update(level=0.99),
    "twin": lambda d: d.update(comparisons=with_twin(d["comparisons"])),
    "no row": lambda d: d["comparisons"].pop(1),
    "more": lambda d: d["comparisons"][1].update(more_queries=12),
    "type": lambda d: d["comparisons"][1].update(paired=True),
    "judge": lambda d: d.update(judge={"kind": "better"}),
    "stopped": lambda d: d.update(stopped=["one"]),
    "new field": lambda d: d.update(proof="one is better."),
    "no field": lambda d: d.pop("caveats"),
}
BY_DOCS = ("order", "relative change", "level", "twin", "no row")


def test_no_changed_field_of_the_json_is_accepted_even_with_new_hashes(run, files):
    file, other = files / "c.json", files / "labels" / "qrels.tsv"
    sides = ("--baseline", FIRST, "--challenger", files / "one.trec", files / "two.trec")
    made = run("compare", "--qrels", QRELS, *sides, "-m", "ndcg@10,mrr@10", "--json").json
    names = inputs(files, "two", "one", times=False)
    other.parent.mkdir()
    other.write_bytes(QRELS.read_bytes())
    for kind, change in {"nothing": lambda _: None, **FORGERIES}.items():
        document = json.loads(json.dumps(made))
        change(document)
        content = document.pop("certificate")
        content["document"] = certificate.sha256(certificate.canonical(document))
        document["certificate"] = json.loads(resealed(json.dumps(content)))
        file.write_text(json.dumps(document))
        found = run("verify", file, *names)
        assert found.code == (kind != "nothing"), (kind, found.out)
        assert ("refused  printed JSON" in found.out) == (kind != "nothing"), kind
        lines = by_docs(file.read_bytes(), files)
        assert bool(lines) == (kind in BY_DOCS) or kind in ("type", "no field"), (kind, lines)
        assert "KeyError" not in "".join(lines)
    # In any order, and with the labels in another folder.
    file.write_text(json.dumps(made))
    order = (files / "two.trec", FIRST, files / "one.trec")
    assert run("verify", file, "--qrels", other, "--run", *order).code == 0


@pytest.mark.parametrize("command", ["report", "compare"])
def test_verdicts_of_a_judge_need_its_grades(run, tmp_path, command):
    rankings(tmp_path)
    graded(tmp_path)
    labels, old, new = (tmp_path / name for name in ("labels.csv", "old.trec", "new.trec"))
    file, judge = tmp_path / "made", ("--judge", tmp_path / "grades.csv")
    ending = ("--json",) if command == "compare" else ("--out", file)
    sides = ("--baseline", new, "--challenger", old)
    made = run(command, "--qrels", labels, *sides, *judge, *ending)
    if command == "compare":
        file.write_text(made.out)
    checked = run("verify", file, "--qrels", labels, "--run", new, old, *judge)
    assert checked.code == 0, checked.out
    checked = run("verify", file, "--qrels", labels, "--run", new, old)
    assert checked.code == 1
    assert "refused  verdicts of the LLM judge: pass the file of its grades" in checked.out


def test_latencies_and_prices_may_differ_from_the_report(run, files):
    file, times = files / "r.html", ("--timings", files / "one.json", files / "one.json")
    sides = ("--baseline", FIRST, "--challenger", files / "one.trec", files / "two.trec")
    more = ("--margin", 5, "--example-values", "--language", "zh", "-m", "map,recall@5")
    rows = json.loads((files / "one.json").read_text())
    assert run("report", "--qrels", QRELS, *sides, *times, *more, "--out", file).code == 0
    slower = [{**row, "latency_ms": 900} for row in rows]
    (files / "one.json").write_text(json.dumps(slower))
    checked = run("verify", file, *inputs(files, "one", "two"))
    assert checked.code == 0, checked.out


@pytest.mark.parametrize(
    ("old", "new", "every"),
    [
        ("one is worse than initial", "one is better than initial", False),
        ("<small>worse", "<small>better", False),
        ("<span class=tag>worse", "<span class=tag>better", False),
        (r"(\(95%: )-[0-9.]+", r"\g<1>-0.001", False),
        ("<h4>Cost</h4>", "<p>one is better.</p><h4>Cost</h4>", True),
        (r"<dd>\d+ · \d+ · \d+</dd>", "<dd>81 · 54 · 29</dd>", True),
    ],
)
def test_no_changed_word_of_the_findings_is_accepted(run, files, report, old, new, every):
    text = report.read_text("utf-8")
    print(text[text.index("<section") :][:9000])
    report.write_bytes(forged(report, old, new, every=every))
    found = run("verify", report, *inputs(files, "one", "two"))
    assert found.code == 1
    assert "refused  printed" in found.out


def test_many_values_are_in_a_file(run, files, monkeypatch):
    monkeypatch.setattr(certificate, "MOST_VALUES", 100)
    file, values = files / "r.html", files / "values.json"
    sides = ("--baseline", FIRST, "--challenger", files / "one.trec", "--preset", "decision")
    assert run("report", "--qrels", QRELS, *sides, "--out", file).code == 0
    assert certificate.opened(file.read_bytes())[0]["data"] is None
    named = inputs(files, "one", times=False)
    assert run("verify", file, *named, "--values", values).code == 0
    assert by_docs(file.read_bytes(), files)
    assert not by_docs(file.read_bytes(), files, values)


def test_a_file_without_a_certificate_is_refused(run, files):
    for name, text in (
        ("a.html", "<main></main>"),
        ("b.json", "{}"),
        ("c.json", '{"certificate": []}'),
    ):
        (files / name).write_text(text)
        found = run("verify", files / name, *inputs(files, "one", times=False))
        assert found.code == 2
        assert found.err.startswith("error: ")
        assert ("no certificate" in found.err) == (name != "c.json")
        assert by_docs((files / name).read_bytes(), files)
    assert run("verify", files / "none.html", *inputs(files, "one", times=False)).code == 2


def test_estimates_from_sampled_labels_are_named_as_not_covered(run, tmp_path):
    rankings(tmp_path, 40)
    plan(run, tmp_path)
    file = tmp_path / "plan.jsonl"
    run("label", "add", file, answers(tmp_path, next_pairs(run, file, 160)))
    run("label", "status", file, "--out", tmp_path / "labels.csv")
    labels, old, new = (tmp_path / name for name in ("labels.csv", "old.trec", "new.trec"))
    sides = ("--qrels", labels, "--baseline", old, "--challenger", new)
    assert run("report", *sides, "--out", tmp_path / "r.html").code == 0
    found = run("verify", tmp_path / "r.html", "--qrels", labels, "--run", old, new)
    assert "not covered: estimates from sampled labels" in found.out
    assert found.code == 0, found.out
    (refused,) = by_docs((tmp_path / "r.html").read_bytes(), tmp_path)
    assert "no numbers: ['estimates from sampled labels'" in refused


def test_a_report_on_tuned_weights_has_no_certificate(monkeypatch):
    study = study_of("helpcentre", 1, SETTINGS[0])
    assert b"rankdash verify" in reports.html(study)
    monkeypatch.setattr(certificate, "is_certifiable", lambda _: False)
    monkeypatch.setattr(reports, "is_certifiable", lambda _: False)
    made = reports.html(study)
    assert b"rankdash verify" not in made
    assert certificate.EMPTY.encode() not in made


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_report_of_the_dashboard_is_checked_with_the_files_of_its_zip(run, tmp_path, language):
    study = study_of("helpcentre", 3, SETTINGS[0])
    for part in (*report_zip.trec_files(study), *report_zip.lost_files(study)):
        file = tmp_path / part.name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(part.make())
    made, trec = tmp_path / "r.html", tmp_path / "trec"
    made.write_bytes(reports.html(study, reports.Front(language=language)))
    rankings = sorted(trec.glob("*.run"), reverse=True)
    (lost,) = trec.glob("*.csv")
    # The baseline is last: it has no timings.
    named = ("--qrels", trec / "qrels.txt", "--run", rankings[-1], *rankings[:-1])
    found = run("verify", made, *named, "--timings", lost)
    assert found.code == 0, found.out
    assert "ok       printed findings" in found.out
    assert not by_docs(made.read_bytes(), tmp_path)


def test_a_folder_is_read_like_files(run, files, report, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(SAMPLE, folder)
    found = run(
        *("verify", report, "--data", folder, "--run", files / "one.trec", files / "two.trec"),
        *("--timings", files / "one.json", files / "one.json", "--first-stage", "initial"),
    )
    assert found.code == 0, found.out
