"""The zip: its files are listed with their hashes, omitted files with the reason. Files for
programs are in English, and file names are never paths."""

import hashlib
import io
import json
import re
import shutil
import sys
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from rankdash.core.base.errors import DataError, UnavailableError
from rankdash.core.base.i18n import speaking
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers import Source, read
from rankdash.core.readers.loading import load
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money, System, first_stage_name, systems_of
from rankdash.core.value.prices import shipped
from rankdash.core.workspace import Workspace
from rankdash.features.report import charts_images
from rankdash.features.report.report_formats import slug
from rankdash.features.report.report_zip import MANIFEST, bundle, drawings
from rankdash.kit.html.tables import ZipPart, english, file_name
from tests.approved import table
from tests.reporting.exports.test_exports import study_of
from tests.stored import keep_lists, keep_rows

MADE = datetime(2026, 11, 21, 6, 14, 49, tzinfo=UTC)
SAFE = re.compile(r"[a-z0-9][a-z0-9/.-]*")
Opened = tuple[dict[str, bytes], dict]


def opened(study: Study, *, pictures: bool = False, **more: object) -> Opened:
    """Return the files in the zip, the manifest first, and the manifest."""
    archive = zipfile.ZipFile(io.BytesIO(bundle(study, MADE, pictures=pictures, **more)))
    assert archive.testzip() is None
    files = {name: archive.read(name) for name in archive.namelist()}
    return files, json.loads(files[MANIFEST])


@pytest.fixture(scope="module")
def packed() -> Opened:
    return opened(study_of(), first=[ZipPart("report.html", "…", lambda: b"<html>")])


def test_the_manifest_lists_every_file_with_its_size_and_hash(packed):
    files, manifest = packed
    assert next(iter(files)) == MANIFEST
    assert {MANIFEST, *(each["name"] for each in manifest["files"])} == {*files}
    for each in manifest["files"]:
        content = files[each["name"]]
        assert len(content) == each["bytes"]
        assert hashlib.sha256(content).hexdigest() == each["sha256"]
    assert files["report.html"] == b"<html>"


def test_what_is_in_it_is_approved(packed, samples, approved):
    """Only the first lines of each text."""
    files, manifest = packed
    priced, of_money = opened(replace(study_of(name="=1+1"), money=Money(currency="EUR")))
    sample, _manifest = opened(samples["zh"])
    listed = [
        {key: value for key, value in each.items() if key not in ("bytes", "sha256")}
        for each in manifest["files"]
    ]
    shown = {"manifest": json.dumps(manifest | {"files": listed}, indent=1, ensure_ascii=False)}
    shown |= {"money": json.dumps(of_money["money"]), "cost.csv": text(priced["cost.csv"])}
    for title, found in (("", files), ("Chinese sample, ", sample)):
        for name, content in found.items():
            if not name.endswith(("parquet", "html", MANIFEST)):
                lines = text(content).splitlines()
                shown[title + name] = "\n".join(line[:300] for line in lines[:6])
    # The last digits may differ from machine to machine.
    said = re.sub(r"\d+\.\d{7,}", lambda found: f"{float(found[0]):.6g}", table(shown))
    approved("exports/zip", re.sub(r'"rankdash": "[^"]+"', '"rankdash": "<version>"', said))


def text(content: bytes) -> str:
    return content.decode("utf-8-sig").replace("\r\n", "\n")


def test_the_rankings_in_it_are_those_that_were_compared(packed):
    study, (files, manifest) = study_of(), packed
    assert manifest["data_set"]["id"] == study.dataset.id
    for each in manifest["systems"]:
        parsed = read([Source("x.run", files[each["file"]])])
        ranking = study.ranking(each["id"])
        for query in ranking.query_ids:
            assert parsed.candidates.documents_of(query)[0] == ranking.documents_of(query)[0]


def test_a_part_that_cannot_be_made_is_left_out_with_its_reason_and_the_rest_is_there():
    def fails() -> bytes:
        raise DataError("No {what}.", remedy="Get some.", what="luck")

    study = study_of()
    run = replace(
        study.run(study.challengers[0]), ranking=Ranking.from_lists([("q1", ["d 1"], [1.0])])
    )
    systems = {**study.systems, "blank": System("blank", "Blank", load=lambda: run)}
    blank = replace(study, systems=systems, challengers=("blank",))
    files, manifest = opened(blank, first=[ZipPart("cost.csv", "Money.", fails)])
    why = {each["name"]: each["why"] for each in manifest["left_out"]}
    assert why["cost.csv"] == "No luck. Get some."
    assert "contains blanks" in why["trec/02-blank.run"]
    assert "trec/01-first-stage.run" in files
    assert not {"cost.csv", "trec/02-blank.run"} & set(files)


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\con", "模型\n=1+1", "-rf" * 99, ""])
def test_no_name_in_it_is_taken_from_a_persons_text_unchanged(name):
    files, manifest = opened(study_of(name=name or " "))
    for each in files:
        assert SAFE.fullmatch(each), each
        assert ".." not in each and len(each) < 60
    assert manifest["systems"][1]["name"] == (name or " ")
    assert slug(name) == slug(slug(name))


@pytest.mark.browser
def test_charts_are_drawn_by_the_installed_browser():
    if charts_images.browser() is None:
        pytest.skip("no browser here")
    hostile = "第一阶段 </script><script>document.body.remove()</script>"
    study = replace(study_of(name=hostile), money=Money())
    files, manifest = opened(study, pictures=True)
    assert manifest["left_out"] == []
    named = {each["name"]: each["what"] for each in manifest["files"]}
    drawn = drawings(study)
    assert {"systems", "cutoffs", "headroom", "changes-1"} <= set(drawn)
    for name, chart in drawn.items():
        root = ElementTree.fromstring(files[f"figures/{name}.svg"].decode())
        assert root.tag.endswith("svg") and root.get("width") == str(charts_images.WIDTH)
        png = files[f"figures/{name}.png"]
        assert png.startswith(b"\x89PNG")
        assert int.from_bytes(png[16:20]) == 2 * charts_images.WIDTH
        whose = f"{hostile}: " if re.search("[0-9]", name) else ""
        assert named[f"figures/{name}.svg"] == whose + chart.alt
    svg = files["figures/systems.svg"].decode()
    assert "第一阶段" in svg and "<script" not in svg


def test_without_a_browser_the_charts_are_left_out_and_the_manifest_says_what_to_install(
    monkeypatch,
):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    # On Linux a browser is searched only in the PATH.
    monkeypatch.setattr(sys, "platform", "linux")
    assert charts_images.browser() is None
    with pytest.raises(UnavailableError):
        charts_images.drawn({"one": go.Figure()})
    files, manifest = opened(study_of(), pictures=True)
    [gone] = manifest["left_out"]
    assert gone["name"] == "figures/" and "Install one of them" in gone["why"]
    assert "queries.csv" in files


def test_a_browser_that_draws_nothing_is_said_so(monkeypatch):
    true = shutil.which("true")
    if true is None:
        pytest.skip("no program that does nothing")
    monkeypatch.setattr(charts_images, "browser", lambda: true)
    with pytest.raises(UnavailableError, match="true did not draw"):
        charts_images.drawn({"one": go.Figure()})


@pytest.mark.parametrize(
    ("data", "what", "expected"),
    [
        ("Help centre", "queries", "rankdash_help-centre_queries.csv"),
        ("帮助中心", "queries", "rankdash_帮助中心_queries.csv"),
        ("", "prices", "rankdash_prices.csv"),
        ("../../etc/passwd\0", "query ../x", "rankdash_etc-passwd_query-x.csv"),
        ("C:\\a|b?*<>\u202e\"'", "to label ndcg@10", "rankdash_c-a-b_to-label-ndcg-10.csv"),
        ("n" * 39 + " end", "-x-", f"rankdash_{'n' * 39}_x.csv"),
        ("n" * 300, "q" * 300, f"rankdash_{'n' * 40}_{'q' * 40}.csv"),
    ],
)
def test_a_download_says_what_it_is_and_is_never_a_path(data, what, expected):
    assert file_name(data, what, "csv") == expected


def test_every_table_is_in_english_and_a_first_stage_that_a_file_named_keeps_its_name(tmp_path):
    """The study is made as in the Chinese interface."""
    rows = "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},how to {q},d{d},text {d},{int(d == q % 4)},{4 - d}\n"
        for q in range(6)
        for d in range(4)
    )
    workspace = Workspace(tmp_path / "home")
    lists = [(f"q{q}", [f"d{q % 4}", "d0" if q % 4 else "d1"], [2.0, 1.0]) for q in range(6)]
    run = keep_lists(workspace, keep_rows(workspace, rows, "Shop"), lists, "better")
    data = workspace.dataset(run.dataset_id)
    with speaking("zh"):
        study = Study.on(
            "ndcg@10", dataset=data, systems=systems_of(data, (run,)), baseline=FIRST_STAGE,
            challengers=(run.id,), money=Money(prices={run.id: shipped()[0]}),
        )  # fmt: skip
        files, manifest = opened(study)
    for name, content in files.items():
        if not name.endswith(".parquet"):
            assert not [each for each in text(content) if each >= "\u4e00"], name
    assert manifest["systems"][0]["name"] == "First stage"
    own = replace(study, systems=systems_of(data, (), first_stage="初次"), challengers=())
    assert english(own).name(FIRST_STAGE) == "初次"


def test_an_uploaded_run_keeps_the_name_of_its_file_in_every_file(tmp_path):
    """Also as the first stage, and in LaTeX."""
    sources = [Source("qrels.txt", "".join(f"q{q} 0 d{q % 4} 1\n" for q in range(6)).encode())]
    for shift, name in enumerate("abcd"):
        lines = (
            f"q{q} Q0 d{(d + shift) % 4} {d + 1} {4 - d} x\n" for q in range(6) for d in range(4)
        )
        sources.append(Source(f"dl_run_{name}.trec", "".join(lines).encode()))
    loaded = load(sources, first_stage="dl_run_b.trec")
    workspace = Workspace(tmp_path / "home")
    dataset_id = workspace.save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    data = workspace.dataset(dataset_id)
    study = Study.on(
        "ndcg@10", dataset=data, systems=systems_of(data, loaded.runs), baseline=FIRST_STAGE,
        challengers=tuple(run.id for run in loaded.runs),
    )  # fmt: skip
    assert list(study.names.values()) == ["dl_run_b", "dl_run_a", "dl_run_c", "dl_run_d"]
    with speaking("zh"):
        assert first_stage_name(data) == "dl_run_b"
        files, _manifest = opened(study)
    texts = {name: text(each) for name, each in files.items() if not name.endswith(".parquet")}
    assert not [name for name, said in texts.items() if "First stage" in said]
    for name in ("summary.tex", "summary.md"):
        assert "dl_run_b" in texts[name].replace("\\", "")
