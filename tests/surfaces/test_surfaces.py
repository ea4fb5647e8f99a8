"""Rule × surface: each surface shows the numbers of the study, exact or rounded, under names that
are markup, formulas and separators."""

import json
import random
import re
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import rankdash as rd
from rankdash.app.command import main
from rankdash.core.readers import sources_at
from rankdash.core.readers.formats import delimited
from rankdash.core.readers.formats import trec as formats_trec
from rankdash.core.readers.loading import load
from rankdash.core.study import latency
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of
from rankdash.features.gate.gate import settings_at
from rankdash.features.report.report import html
from tests.surfaces.case import SPEC
from tests.surfaces.conftest import without_charts
from tests.surfaces.reading import Page
from tests.surfaces.shown import (
    RULES,
    SURFACES,
    command,
    differences,
    evaluate,
    existing,
    expected,
    timings,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("surface", SURFACES)
def test_a_surface_says_what_the_study_says(case, surface, rules):
    shown = SURFACES[surface](case, rules)
    assert shown
    assert differences(existing(shown), expected(case, rules, surface, shown)) == {}


def test_the_report_of_the_command_is_that_of_the_study_under_the_rules_in_force(
    case, report, approved, tmp_path
):
    """The same text except date and file; a file that rankdash wrote has no ties. Its numbers equal
    those in the study; this test checks level, tie band and the rules."""
    rules, out = RULES[2], tmp_path / "report.html"
    study = case.study_of(case.runs, conventions=rules.conventions, statistics=rules.statistics)
    with without_charts():
        page = Page(html(study).decode())
        command(
            *("report", "--data", case.folder, "--out", out),
            *("--challenger", *case.files.values(), "--timings", *timings(case)),
            options=f"{rules.conventional} {rules.statistical}",
        )
    written = Page(out.read_text("utf-8"))
    for section in set(page.texts) - {"", "origin", "rules"}:
        assert written.tables[section] == page.tables[section]
        assert written.texts[section] == page.texts[section]
        assert not re.search(r"95%(:| interval| confid)|±0\.005", page.texts[section]), section
    *shown, counts = page.tables["rules"]
    *others, read = written.tables["rules"]
    assert others == shown
    tied = counts[0].index("with tied scores")
    for one, other in zip(read, counts, strict=True):
        assert [*one[:tied], *one[tied + 1 :]] == [*other[:tied], *other[tied + 1 :]]
    assert "80%" in page.texts["verdict"] and "±0.1" in page.texts["queries"]
    usual, changed = ({row[0]: row[1] for table in read.tables["rules"] for row in table
                       if len(row) < 4}
                      for read in (report, page))  # fmt: skip
    moved = {name: value for name, value in changed.items() if usual[name] != value}
    rows = [f"{name}: {usual[name]} → {value}" for name, value in moved.items()]
    approved("surfaces/rules", "\n".join(rows))


def test_the_gate_sees_the_same_of_a_run_with_failures(case):
    study = case.study_of((case.flaky,), statistics=settings_at(0.95))
    row, taken = (
        study.comparison.row(case.flaky.id, SPEC),
        latency.summary(study, case.flaky.id),
    )
    said = json.loads(
        command(
            *("gate", "--qrels", case.qrels, "--baseline", case.initial),
            *("--challenger", case.files[case.flaky.id], "--timings", case.timings),
            *("--min", f"{SPEC}=0", "--min-gain", f"{SPEC}=-1", "--max-hurt", f"{SPEC}=1"),
            *("--max", "p50_ms=9999", "p90_ms=9999", "p95_ms=9999", "failed=9", "--json"),
        )
    )
    found = [
        tuple(each[name] for name in ("value", "low", "high", "n")) for each in said["conditions"]
    ]
    mean, gain, hurt, *times, failed = found
    assert mean == (row["mean"], row["mean_low"], row["mean_high"], row["n"])
    assert gain == (row["delta"], row["delta_low"], row["delta_high"], row["paired"])
    assert (hurt[0], hurt[3]) == (row["hurt"] / row["paired"], row["paired"])
    assert [(each[0], each[3]) for each in times] == [
        (value, taken.n) for value in (taken.p50, taken.p90, taken.p95)
    ]
    assert failed[0] == len(study.failures(case.flaky.id))
    out = study.comparison.excluded(case.flaky.id, SPEC)
    (note,) = (each for each in said["notes"] if "Excluded" in each)
    assert re.findall(r"\d+(?= )", note.partition(": ")[2]) == [str(n) for n in out.values()]


# Form of a file → its text. Arrow is not used for files with blank lines or quotation marks.
FORMS = {
    "trec with a blank line": lambda frame: trec(frame).replace("\n", "\n\n", 1),
    "trec in no order": lambda frame: trec(frame.sample(frac=1, random_state=1)),
    "csv": lambda frame: frame.to_csv(index=False),
    "csv, crlf": lambda frame: frame.to_csv(index=False).replace("\n", "\r\n"),
    "quoted csv": lambda frame: frame.to_csv(index=False, quoting=2),
    "tsv": lambda frame: frame.to_csv(index=False, sep="\t"),
    "parquet": None,
}
SEPARATORS = {"trec in no order": " ", "csv": ",", "csv, crlf": ",", "tsv": "\t"}


def trec(frame: pd.DataFrame) -> str:
    middle = {"label": "{0} 0 {1} {2}\n", "score": "{0} Q0 {1} 1 {2} x\n"}[frame.columns[2]]
    return "".join(middle.format(*row) for row in frame.itertuples(index=False, name=None))


def rewritten(file: Path, form: str, folder: Path) -> Path:
    """Write the labels or the ranking of a file in another form, to the last digit."""
    labels = file.suffix == ".tsv"
    head, columns = (0, [0, 1, 2]) if labels else (None, [0, 2, 4])
    frame = pd.read_csv(file, sep=r"\s+", dtype=str, header=head, usecols=columns)
    frame.columns = ["query_id", "doc_id", "label" if labels else "score"]
    target = folder / f"{file.stem}.{form.split()[-1 if form == 'quoted csv' else 0].strip(',')}"
    if FORMS[form] is None:
        frame.astype({frame.columns[2]: float}).to_parquet(target)
    else:
        target.write_bytes(FORMS[form](frame).encode())
    return target


@pytest.mark.parametrize("form", FORMS)
def test_however_the_files_are_written(case, tmp_path, form):
    """`evaluate` builds its study from ids only, with the fast reader if possible."""
    shown = evaluate(case, RULES[0], partial(rewritten, form=form, folder=tmp_path))
    numbers = expected(case, RULES[0], "evaluate", shown)
    assert differences(existing(shown), numbers) == {}


ODD = ("nan", "inf", "x", "", "1_0", " 1", "0x1", "2.5", "1e-3", "-4", "Q1", "q1\u00a0", "é")


def hurt(file: Path, separator: str, draw: random.Random, copies: int) -> Path:
    """Write the file with up to two errors, and with copies of its rows for other queries."""
    head, *lines = file.read_text().splitlines()
    lines = ([head, *lines] if separator == " " else lines)[: None if copies else 60]
    for _ in range(draw.randrange(3)):
        at = draw.randrange(len(lines))
        cells = lines[at].split(separator)
        other = [*cells]
        other[draw.randrange(len(cells))] = draw.choice(ODD)
        wrong = draw.choice(([cells, cells], [cells, other], [other], [cells[:-1]],
                             [[*cells, "more"]], [[], cells], []))  # fmt: skip
        lines[at : at + 1] = map(separator.join, wrong)
    ahead = [f"{copy}{line}" for copy in range(copies) for line in lines]
    whole = [*ahead, *lines] if separator == " " else [head, *ahead, *lines]
    end = draw.choice(("\n", "\n", "\r\n"))
    text = end.join(whole) + draw.choice((end, "", end * 2))
    file.write_bytes(text.encode(draw.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16"))))
    return file


def test_blocks_and_lines_say_the_same_of_files_whole_and_hurt(case, tmp_path, monkeypatch, capfd):
    """To the last digit and the last line number; some files are read in pieces."""

    def said(files: list[Path]) -> tuple[int, str, str]:
        code = main(["evaluate", *map(str, files), "--json", "--metric", "ndcg@10,map,judged@10"])
        return code, *capfd.readouterr()

    pairs = []
    for seed in range(20):
        draw, folder = random.Random(seed), tmp_path / str(seed)
        folder.mkdir()
        copies = 0 if seed else 100
        forms = draw.choices(list(SEPARATORS), k=2)
        pairs.append(
            [
                hurt(rewritten(file, form, folder), SEPARATORS[form], draw, copies)
                for file, form in zip((case.qrels, case.initial), forms, strict=True)
            ]
        )
    fast = [said(files) for files in pairs]
    assert {code for code, _, _ in fast} <= {0, 2}
    for reader in (formats_trec, delimited):
        monkeypatch.setattr(reader, "even_columns", lambda *_, **__: None)
    for files, known in zip(pairs, fast, strict=True):
        assert said(files) == known, files


def test_an_order_that_rankdash_made_has_one_mean(tmp_path):
    """Equal texts have equal scores of BM25, and the order of the rows resolves the tie."""
    rows = [
        {"query_id": f"q{q}", "query": "pay by card", "doc_id": f"d{d}",
         "document": "pay by card" if d % 2 else "parking", "label": int(d == 1 + 2 * (q % 3))}
        for q in range(30)
        for d in range(9)
    ]  # fmt: skip
    file, out = tmp_path / "shop.jsonl", tmp_path / "r.html"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    loaded = load(sources_at([file]))
    study = Study.on(
        SPEC, dataset=loaded.dataset, systems=systems_of(loaded.dataset, ()), baseline=FIRST_STAGE,
        challengers=(),
    )  # fmt: skip
    (mean, *_ends), data = study.mean(FIRST_STAGE), rd.read(file)
    assert rd.evaluate(data).mean(SPEC) == mean
    assert mean != rd.evaluate(data, conventions=rd.Conventions(ties="trec")).mean(SPEC)
    command("report", "--data", file, "--sections", "systems", "--out", out)
    (_head, first, *_rest) = Page(out.read_text("utf-8")).tables["systems"][0]
    assert first[2] == f"{mean:.3f}"


def test_with_many_queries_every_surface_takes_as_many_resamples(tmp_path):
    queries = [f"q{q}" for q in range(2001)]
    qrels, base, up = (tmp_path / name for name in ("many.qrels", "base.trec", "up.trec"))
    qrels.write_text("".join(f"{name} 0 a 1\n" for name in queries))
    base.write_text("".join(f"{name} Q0 b 1 2 x\n{name} Q0 a 2 1 x\n" for name in queries))
    up.write_text("".join(f"{name} Q0 {'ab'[n % 3 == 0]} 1 2 x\n{name} Q0 a{n} 2 1 x\n"
                          for n, name in enumerate(queries)))  # fmt: skip
    sides = ("--qrels", qrels, "--baseline", base, "--challenger", up, "--json")
    told = json.loads(command("compare", *sides, "--metric", "mrr@10"))
    assert told["settings"]["resamples"] == 1000
    few = json.loads(command("compare", *sides, "--metric", "mrr@10", "--resamples", "500"))
    assert few["settings"]["resamples"] == 500
    gated = json.loads(command("gate", *sides, "--min", "mrr@10=0"))
    assert gated["settings"]["resamples"] == 1000
    data = rd.read(qrels, base)
    ranked = rd.read_run(up, data)
    evaluations = {"base": rd.evaluate(data, metrics="mrr@10"),
                   "up": rd.evaluate(data, ranked, "mrr@10")}  # fmt: skip
    study = rd.study_of(data, ranked, metric="mrr@10")
    for row in (
        rd.compare(evaluations).row("up", "mrr@10"),
        study.comparison.row(ranked.id, "mrr@10"),
    ):
        for name in ("mean", "delta", "delta_low", "delta_high", "p"):
            assert row[name] == told["comparisons"][1][name]
