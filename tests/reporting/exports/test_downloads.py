"""What downloads are called, and that files for a program are in English."""

import io
import json
import zipfile
from datetime import UTC, datetime

import pytest

from rankdash.i18n import speaking
from rankdash.loading import load
from rankdash.readers import Source
from rankdash.reporting.exports.downloads import english, file_name
from rankdash.reporting.exports.zip_file import bundle
from rankdash.store import Workspace
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money, first_stage_name, systems_of
from rankdash.value.price_list import shipped
from tests.stored import keep_lists, keep_rows


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


@pytest.fixture
def chinese(tmp_path) -> Study:
    """A study as the interface makes it in Chinese."""
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
        return Study.on(
            "ndcg@10",
            dataset=data,
            systems=systems_of(data, (run,)),
            baseline=FIRST_STAGE,
            challengers=(run.id,),
            money=Money(prices={run.id: shipped()[0]}),
        )


def test_every_table_of_the_zip_is_in_english_and_the_same(chinese):
    with speaking("zh"):
        packed = bundle(chinese, datetime(2026, 1, 2, tzinfo=UTC), pictures=False)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert "trec/01-first-stage.run" in archive.namelist()
        files = {name: archive.read(name) for name in archive.namelist()}
    for name, content in files.items():
        if not name.endswith(".parquet"):
            assert not [each for each in content.decode("utf-8-sig") if each >= "\u4e00"], name
    assert json.loads(files["manifest.json"])["systems"][0]["name"] == "First stage"


def test_a_first_stage_that_a_file_named_keeps_its_name(chinese):
    data = chinese.dataset
    own = Study.on(
        "ndcg@10", dataset=data, systems=systems_of(data, (), first_stage="初次"),
        baseline=FIRST_STAGE, challengers=(),
    )  # fmt: skip
    assert english(own).name(FIRST_STAGE) == "初次"


def test_an_uploaded_run_keeps_the_name_of_its_file_in_every_file(tmp_path):
    """Also where it is the first stage, and in LaTeX."""
    qrels = "".join(f"q{q} 0 d{q % 4} 1\n" for q in range(6))
    runs = {
        f"dl_run_{name}.trec": "".join(
            f"q{q} Q0 d{(d + shift) % 4} {d + 1} {4 - d} x\n" for q in range(6) for d in range(4)
        )
        for shift, name in enumerate("abcd")
    }
    files = {"qrels.txt": qrels, **runs}
    loaded = load(
        [Source(name, text.encode()) for name, text in files.items()], first_stage="dl_run_b.trec"
    )
    workspace = Workspace(tmp_path / "home")
    dataset_id = workspace.save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    data = workspace.dataset(dataset_id)
    study = Study.on(
        "ndcg@10",
        dataset=data,
        systems=systems_of(data, loaded.runs),
        baseline=FIRST_STAGE,
        challengers=tuple(run.id for run in loaded.runs),
    )
    assert list(study.names.values()) == ["dl_run_b", "dl_run_a", "dl_run_c", "dl_run_d"]
    with speaking("zh"):
        assert first_stage_name(data) == "dl_run_b"
        packed = bundle(study, datetime(2026, 1, 2, tzinfo=UTC), pictures=False)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        texts = {
            name: archive.read(name).decode("utf-8-sig")
            for name in archive.namelist()
            if name.endswith((".tex", ".md", ".csv", ".json", ".html", ".run"))
        }
    assert any(name.endswith(".tex") for name in texts)
    assert not [name for name, text in texts.items() if "First stage" in text]
    tables = [text for name, text in texts.items() if name.endswith((".tex", ".md"))]
    assert any("dl\\_run\\_b" in text or "dl_run_b" in text for text in tables)
