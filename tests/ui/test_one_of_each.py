"""One query, one document, one label: every page, command and file uses the singular."""

import re
import zipfile
from datetime import UTC, datetime
from io import BytesIO

import pytest

from rankdash.app.command import main
from rankdash.core.data.ranking import Run
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of
from rankdash.features.report.report import html
from rankdash.features.report.report_zip import bundle
from tests.stored import keep_lists, keep_rows
from tests.ui.test_pages import open_page, texts

# The other document has the same score and no label.
ROWS = "query_id,query,doc_id,document,label,score\nq0,find,d1,other,,1\nq0,find,d0,one word,1,1\n"
COUNTED = (
    "queries|documents|labels|rows|pairs|runs|systems|candidates|groups|tokens|searches|judgments|"
    "comparisons|conditions|warnings|notes|errors|calls|threads|clients|characters|files|ones|are|"
    "were|have|count"
)
# "0 of 1" counts parts, and a number with decimals is a measure: neither has a separate plural.
SEVERAL = re.compile(rf"(?<![\d.,/@=≤–-])(?<!of )1 (?:(?!with)\w+ )?(?:{COUNTED})\b")
PAGES = (
    "data",
    "run",
    "overview",
    "queries",
    "rank_shifts",
    "latency",
    "cost",
    "policy",
    "report",
    "history",
)


def several(text: str) -> list[str]:
    return [text[max(each.start() - 60, 0) : each.end() + 30] for each in SEVERAL.finditer(text)]


@pytest.fixture
def one(workspace) -> Run:
    return keep_lists(
        workspace, keep_rows(workspace, ROWS, "One"), [("q0", ["d0", "d1"], [2.0, 1.0])], "run"
    )


def test_what_is_looked_for_is_found():
    assert several("None of the 1 queries") and several("1 relevant documents") and several("1 are")
    assert not several("1 query") and not several("0.1 queries") and not several("11 documents")


def test_the_pages(app, one):
    for page in PAGES:
        shown = open_page(app, page)
        charts = [str(getattr(each.proto, "alt", "")) for each in shown.get("plotly_chart")]
        told = [texts(shown), *(str(each.value) for each in shown.warning), *charts]
        assert several("\n".join(told)) == [], page


def test_the_report_and_the_files(workspace, one):
    data = workspace.dataset(one.dataset_id)
    study = Study.on(
        "ndcg@10", dataset=data, systems=systems_of(data, (one,)), baseline=FIRST_STAGE,
        challengers=(one.id,),
    )  # fmt: skip
    page = re.sub(r"<script.*?</script>|<style.*?</style>", "", html(study).decode(), flags=re.S)
    assert several(re.sub(r"<[^>]+>", "\n", page)) == []
    packed = bundle(study, datetime(2026, 1, 2, tzinfo=UTC), pictures=False)
    with zipfile.ZipFile(BytesIO(packed)) as archive:
        for name in archive.namelist():
            if name.endswith((".md", ".tex", ".txt")):
                assert several(archive.read(name).decode()) == [], name


def test_the_commands(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text(ROWS)
    (tmp_path / "labels.qrels").write_text("q0 0 d0 1\n")
    for name in ("one", "two"):
        (tmp_path / f"{name}.trec").write_text("q0 Q0 d0 1 1.0 x\nq0 Q0 d1 1 1.0 x\n")
    files = {each.stem: str(each) for each in tmp_path.iterdir()}
    sides = ["--qrels", files["labels"], "--baseline", files["one"], "--challenger", files["two"]]
    for command in (
        ["check", files["rows"]],
        ["check", files["labels"], files["one"]],
        ["evaluate", "--qrels", files["labels"], "--run", files["one"]],
        ["compare", *sides],
        ["gate", *sides, "--min", "mrr@10=0.5"],
        ["fuse", "--run", files["one"], files["two"], "--out", files["one"] + "f"],
        ["rerank", "--data", files["rows"], "--reranker", "bm25", "--out", files["one"] + "r"],
    ):
        main(command)
        out, err = capsys.readouterr()
        assert several(out + err) == [], command
