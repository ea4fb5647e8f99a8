"""One zip: what is in it is listed with its hash, what is not is listed with the reason."""

import csv
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

from rankdash.errors import DataError, UnavailableError
from rankdash.ranking.ranking import Ranking
from rankdash.readers import Source, read
from rankdash.reporting.exports import images
from rankdash.reporting.exports.zip_file import MANIFEST, ZipPart, bundle, slug
from rankdash.reporting.figures import drawings
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money, System

from .test_exports import study_of

MADE = datetime(2026, 11, 21, 6, 14, 49, tzinfo=UTC)
SAFE = re.compile(r"[a-z0-9][a-z0-9/.-]*")


def opened(content: bytes) -> tuple[zipfile.ZipFile, dict]:
    archive = zipfile.ZipFile(io.BytesIO(content))
    assert archive.testzip() is None
    return archive, json.loads(archive.read(MANIFEST))


@pytest.fixture(scope="module")
def packed():
    return opened(
        bundle(
            study_of(), MADE, first=[ZipPart("report.html", "…", lambda: b"<html>")], pictures=False
        )
    )


def test_the_manifest_lists_every_file_with_its_size_and_hash(packed):
    archive, manifest = packed
    assert archive.namelist()[0] == MANIFEST
    assert sorted([MANIFEST, *(each["name"] for each in manifest["files"])]) == sorted(
        archive.namelist()
    )
    for each in manifest["files"]:
        content = archive.read(each["name"])
        assert len(content) == each["bytes"]
        assert hashlib.sha256(content).hexdigest() == each["sha256"]
        assert each["what"]
    assert archive.read("report.html") == b"<html>"


def test_the_manifest_says_what_was_compared_and_how(packed):
    study, (_archive, manifest) = study_of(), packed
    assert manifest["data_set"]["id"] == study.dataset.id
    assert manifest["made_utc"] == "2026-11-21T06:14:49+00:00"
    assert [each["role"] for each in manifest["systems"]] == ["baseline", "challenger"]
    assert manifest["systems"][1]["queries"] == {"done": 10, "failed": 1, "skipped": 1}
    assert manifest["statistics"] == study.statistics.as_dict()
    assert manifest["conventions"] == study.conventions.as_dict()
    assert manifest["left_out"] == []


def test_what_it_costs_is_in_it_where_prices_are_known(packed):
    assert "cost.csv" not in packed[0].namelist()
    study = study_of(name="=1+1")
    archive, manifest = opened(
        bundle(replace(study, money=Money(currency="EUR")), MADE, pictures=False)
    )
    rows = list(csv.reader(io.StringIO(archive.read("cost.csv").decode("utf-8-sig"))))
    assert ["currency", "EUR"] in rows
    assert "'=1+1" in {row[0] for row in rows if row}
    assert manifest["money"]["currency"] == "EUR"


def test_the_rankings_in_it_are_those_that_were_compared(packed):
    study, (archive, manifest) = study_of(), packed
    for each in manifest["systems"]:
        parsed = read([Source("x.run", archive.read(each["file"]))])
        ranking = study.ranking(each["id"])
        for query in ranking.query_ids:
            assert parsed.candidates.documents_of(query)[0] == ranking.documents_of(query)[0]


def test_a_part_that_cannot_be_made_is_left_out_with_its_reason_and_the_rest_is_there():
    def fails() -> bytes:
        raise DataError("No {what}.", remedy="Get some.", what="luck")

    study = study_of()
    run = Ranking.from_lists([("q1", ["d 1"], [1.0])])
    blank = Study(
        dataset=study.dataset,
        systems={
            **study.systems,
            "blank": System("blank", "Blank", load=lambda: _renamed(study, run)),
        },
        baseline=FIRST_STAGE,
        challengers=("blank",),
        statistics=study.statistics,
    )
    archive, manifest = opened(
        bundle(blank, MADE, first=[ZipPart("cost.csv", "Money.", fails)], pictures=False)
    )
    why = {each["name"]: each["why"] for each in manifest["left_out"]}
    assert why["cost.csv"] == "No luck. Get some."
    assert "separates its fields by blanks" in why["trec/02-blank.run"]
    assert "trec/01-first-stage.run" in archive.namelist()
    assert not {"cost.csv", "trec/02-blank.run"} & set(archive.namelist())


def _renamed(study: Study, ranking: Ranking):
    return replace(study.run(study.challengers[0]), ranking=ranking)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "C:\\x", "con", "模型", "a\nb", "=1+1", "x" * 300, "", "-rf"]
)
def test_no_name_in_it_is_taken_from_a_persons_text_unchanged(name):
    archive, manifest = opened(bundle(study_of(name=name or " "), MADE, pictures=False))
    for each in archive.namelist():
        assert SAFE.fullmatch(each), each
        assert ".." not in each
        assert len(each) < 60
    assert manifest["systems"][1]["name"] == (name or " ")
    assert slug(name) == slug(slug(name))


@pytest.mark.browser
def test_charts_are_drawn_by_the_installed_browser():
    if images.browser() is None:
        pytest.skip("no browser here")
    hostile = "第一阶段 </script><script>document.body.remove()</script>"
    study = replace(study_of(name=hostile), money=Money())
    archive, manifest = opened(bundle(study, MADE))
    assert manifest["left_out"] == []
    named = {each["name"]: each["what"] for each in manifest["files"]}
    drawn = drawings(study)
    assert {"systems", "cutoffs", "headroom", "changes-1"} <= set(drawn)
    for name, chart in drawn.items():
        root = ElementTree.fromstring(archive.read(f"figures/{name}.svg").decode())
        assert root.tag.endswith("svg")
        assert root.get("width") == str(images.WIDTH)
        png = archive.read(f"figures/{name}.png")
        assert png.startswith(b"\x89PNG")
        assert int.from_bytes(png[16:20]) == 2 * images.WIDTH
        whose = f"{hostile}: " if re.search("[0-9]", name) else ""
        assert named[f"figures/{name}.svg"] == whose + chart.alt
    svg = archive.read("figures/systems.svg").decode()
    assert "第一阶段" in svg
    assert "<script" not in svg


def test_without_a_browser_the_charts_are_left_out_and_the_manifest_says_what_to_install(
    monkeypatch,
):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    # There, no place but the PATH is looked at.
    monkeypatch.setattr(sys, "platform", "linux")
    assert images.browser() is None
    with pytest.raises(UnavailableError):
        images.drawn({"one": go.Figure()})
    archive, manifest = opened(bundle(study_of(), MADE))
    [gone] = manifest["left_out"]
    assert gone["name"] == "figures/"
    assert "Install one of them" in gone["why"]
    assert "queries.csv" in archive.namelist()


def test_a_browser_that_draws_nothing_is_said_so(monkeypatch):
    true = shutil.which("true")
    if true is None:
        pytest.skip("no program that does nothing")
    monkeypatch.setattr(images, "browser", lambda: true)
    with pytest.raises(UnavailableError, match="true did not draw"):
        images.drawn({"one": go.Figure()})
