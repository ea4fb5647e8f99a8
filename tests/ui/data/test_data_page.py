"""The page Data without its uploads: the check report, the stored data sets, and files to export
and import."""

from collections import Counter
from dataclasses import replace

import pytest
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base.errors import Finding
from rankdash.core.data.dataset import Dataset
from rankdash.core.intake.reading import StoreOutcome
from rankdash.core.readers import Source
from rankdash.core.readers.loading import load
from rankdash.core.workspace.workspace_file.import_workspace import TakenIn
from rankdash.features.data import page as data_page
from rankdash.features.data import page_list, page_samples, page_upload
from rankdash.kit.widgets import address
from tests.approved import table
from tests.stored import keep_lists
from tests.ui.conftest import ROWS, opened_at
from tests.ui.page_text import page_text
from tests.ui.sessions import part, said

UNEVEN = "query_id,query,doc_id,document,label,score\n" + "".join(
    f"q{q},ask {q},d{d},text {d},{int(d == 0) if q else ''},{9 - d}\n"
    for q in range(8)
    for d in range(3 + q)
)
BARE = "query_id,doc_id,label,score\n" + "".join(
    f"q{q},d{d},{int(d == q)},{3 - d}\n" for q in range(3) for d in range(3)
)
UNLABELLED = "query,document,score\n" + "".join(
    f"ask {q},text {q} {d},{d}\n" for q in range(3) for d in range(3)
)


def found(severity="warning", remedy="", **more):
    return Finding(severity, "code", f"A {severity} of {{what}}.", {"what": "*x*"}, remedy, **more)


FINDINGS = [
    found(), found("note", "Do it to {what}.", examples=("x" * 300, "y")), found("note"),
    found("error", file="rows.csv"), found("note", file="rows.csv", line=7),
]  # fmt: skip


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Case → id of data sets that no test changes."""
    with opened_at(tmp_path_factory.mktemp("home")) as workspace:

        def keep(name, rows, findings=None, **changed):
            loaded = load([Source("rows.csv", rows.encode())], name=name)
            told = loaded.report if findings is None else replace(loaded.report, findings=findings)
            was = loaded.dataset
            parts = (was.queries, was.documents, was.qrels, was.candidates)
            data = Dataset(was.name, *parts, **{"first_stage": was.first_stage} | changed)
            return workspace.save_dataset(data, source="upload", report_json=told.to_json())

        kept = {
            "usual": keep("Shop", ROWS),
            "labels of some, candidates of several lengths": keep("Uneven", UNEVEN),
            "no text: nothing can be reranked": keep("Bare", BARE),
            "no labels": keep("Unlabelled", UNLABELLED),
            "findings of each kind": keep("Found *x*", ROWS.replace("how to", "can I"), FINDINGS),
            "one warning, a first stage of a name": keep(
                "Named",
                ROWS.replace("how to", "may I"),
                [found()],
                candidates_name="BM25 of the shop",
            ),
            "nothing, a first stage of the rows": keep(
                "Rows", ROWS.replace("how to", "must I"), [], first_stage="rows"
            ),
        }
        for name in ("mini", "bge *m3*"):
            keep_lists(workspace, kept["usual"], [("q0", ["d1", "d0"], [2.0, 1.0])], name)
        keep_lists(workspace, kept["no labels"], [], "one")
        yield kept


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_check_report(sets, approved, lang):
    told = {}
    for why, data in sets.items():
        app = part(data_page.draw, data, blocking_said=False, lang=lang, chosen={"data": data})
        told[why] = page_text(app)
    approved(f"pages/check.{lang}", table(told))


def test_the_systems_that_came_with_files_are_compared(sets):
    app = part(data_page.draw, sets["usual"], blocking_said=False, chosen={"data": sets["usual"]})
    (link,) = [each for each in app.get("page_link") if each.proto.label.startswith("Compare them")]
    assert (
        link.proto.query_string.count("system=") == 2 and sets["usual"] in link.proto.query_string
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_became_of_files(sets, approved, lang):
    every = list(sets.values())
    cases = {
        "it is ready": (StoreOutcome(every[0]), every[0]),
        "it cannot be reranked": (StoreOutcome(every[2]), every[2]),
        "it has no labels": (StoreOutcome(sets["no labels"]), every[0]),
        "it was here, and is open": (StoreOutcome(every[0], was_here=True), every[0]),
        "it was here, with new systems": (StoreOutcome(every[0], True, ("a", "b*")), every[1]),
        "it is gone": (StoreOutcome("gone"), every[0]),
    }
    told = {}
    for why, (kept, opened) in cases.items():
        app = part(data_page.show_stored, kept, lang=lang, chosen={"data": opened})
        blocked = app.session_state["found"]
        told[why] = f"{page_text(app)}\n→ {blocked and blocked == kept.dataset_id}"
    approved(f"pages/kept.{lang}", table(told))


def test_another_data_set_is_opened_without_the_choices_of_the_last(session):
    for field in ("base", "system", "q", "metric"):
        address.choose(field, "x")
    data_page.choose("shop")
    assert address.offered() == {"data": ["shop"], "metric": ["x"]}


# Stored data sets.


@pytest.mark.parametrize(("primary", "kinds"), [(True, ["primary", "secondary"]),
                                                (False, ["secondary", "secondary"])])  # fmt: skip
def test_the_sample_of_the_interfaces_language_is_offered_first(workspace, primary, kinds):
    app = part(page_upload.sample_buttons, {"x"}, primary=primary)
    assert [each.label for each in app.button] == ["Open the sample", "Open the sample in 中文"]
    assert [each.proto.type for each in app.button] == kinds
    own = part(page_upload.sample_buttons, [page_samples.ids()["zh"]], primary=primary, lang="zh")
    assert len(own.button) == 1, "what is here is not offered again"


# Exported and imported files.

KINDS = ("datasets", "runs", "notes", "corrections", "explanations", "judges", "settings")


def differ(count):
    return [Finding("warning", "differs", "n {at}", {"at": at}) for at in range(count)]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_import_says_once_what_was_new_and_what_differs(workspace, approved, lang):
    cases = {
        "nothing": TakenIn(),
        **{f"one of {kind}": TakenIn(added=Counter({kind: 1})) for kind in KINDS},
        "several": TakenIn(added=Counter({"runs": 2, "judges": 1, "settings": 1})),
        "twenty differ": TakenIn(findings=differ(20)),
        "one more than are named": TakenIn(findings=differ(21)),
    }
    told = {}
    for why, taken in cases.items():
        app = part(page_list.draw_sharing_files, [], lang=lang, state={"sharing.said": taken})
        lines = "\n".join(each.value for each in (*app.success, *app.warning)).splitlines()
        last = f"{len(lines)} lines, the last: {lines[-1]}"
        told[why] = last if len(lines) > 4 else "\n".join(lines)
        assert not app.run().success
    approved(f"pages/imported.{lang}", table(told))


@pytest.mark.parametrize(
    ("chosen", "name"),
    [("ab", "rankdash_workspace.rankdash.zip"), ("b", "rankdash_beta_workspace.rankdash.zip"),
     ("", None)],
)  # fmt: skip
def test_what_is_exported_is_named_where_it_is_one_data_set(
    workspace, monkeypatch, only_shown, chosen, name
):
    for each, rows in (("Alpha", ROWS), ("Beta", UNEVEN)):
        loaded = load([Source("rows.csv", rows.encode())], name=each)
        workspace.save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    rows, offered = workspace.datasets(), {}
    monkeypatch.setattr(
        DeltaGenerator, "download_button", lambda *_given, **how: offered.update(how)
    )
    monkeypatch.setattr(page_list, "exported", list)
    app = part(page_list.draw_sharing_files, rows)
    (field,) = app.multiselect
    ids = dict(zip("ab", (row.id for row in rows), strict=True))
    assert field.options == ["Alpha", "Beta"] and field.value == [*ids.values()]
    field.set_value([ids[each] for each in chosen]).run()
    assert offered["disabled"] is (name is None)
    assert offered["data"]() == [ids[each] for each in chosen]
    assert name is None or offered["file_name"] == name
    assert app.file_uploader
    # A read-only workspace accepts no file.
    only_shown()
    assert not part(page_list.draw_sharing_files, rows).file_uploader
    assert not said(part(page_list.draw_sharing_files, []))
