"""What became of files, and what goes with a data set."""

from collections import Counter
from types import SimpleNamespace

import pytest

from rankdash.findings import Finding
from rankdash.i18n import speaking
from rankdash.store.workspace_file.merge_rows import TakenIn
from rankdash.ui.data import dataset_list, kept_view, sharing_files, uploads
from rankdash.ui.state import address


def kept(**changes: object) -> SimpleNamespace:
    return SimpleNamespace(**({"dataset_id": "shop", "was_here": False, "added": ()} | changes))


@pytest.mark.parametrize(
    ("changes", "opened", "blocked", "kind", "said", "button"),
    [
        ({}, "shop", False, "success", "Shop is ready: 2 queries and 1 document.", False),
        (
            {},
            "shop",
            True,
            "warning",
            "Blocked. Add it. Shop is stored: 2 queries and 1 document.",
            False,
        ),
        (
            {"was_here": True},
            "shop",
            False,
            "info",
            "These files equal Shop, which is in this workspace. Nothing was stored.",
            False,
        ),
        (
            {"was_here": True, "added": ("a", "b")},
            "other",
            False,
            "info",
            "These files equal Shop, which is in this workspace. New in it: a, b.",
            True,
        ),
    ],
)
def test_what_became_of_files_is_said(
    paper, session, monkeypatch, changes, opened, blocked, kind, said, button
):
    rows = [SimpleNamespace(id="x", name="X"),
            SimpleNamespace(id="shop", name="Shop", queries=2, documents=1)]  # fmt: skip
    monkeypatch.setattr(kept_view, "workspace", lambda: SimpleNamespace(datasets=lambda: rows))
    finding = SimpleNamespace(remedy="Add {what}.", params={"what": "it"})
    report = SimpleNamespace(blocks_reranking=finding if blocked else None, implausible=())
    monkeypatch.setattr(kept_view.stored, "check_report", lambda _id: report)
    monkeypatch.setattr(kept_view, "finding_text", lambda _finding: "Blocked.")
    address.settle("data", opened)
    drawn = paper(kept_view)
    assert kept_view.say(kept(**changes)) == ("shop" if blocked else None)
    assert drawn.of(kind) == [said]
    assert bool(drawn.of("button")) is button
    kept_view.say(kept(dataset_id="gone"))
    assert len(drawn.of(kind)) == 1


def test_sentences_in_chinese_follow_each_other_without_a_blank(paper, session, monkeypatch):
    rows = [SimpleNamespace(id="shop", name="Shop", queries=2, documents=1)]
    monkeypatch.setattr(kept_view, "workspace", lambda: SimpleNamespace(datasets=lambda: rows))
    drawn = paper(kept_view)
    with speaking("zh"):
        kept_view.say(kept(was_here=True))
    assert drawn.of("info") == ["这些文件与本工作区中的Shop内容相同。未存储任何内容。"]


def test_another_data_set_is_opened_without_the_choices_of_the_last(session):
    for field in ("base", "system", "q", "metric"):
        address.choose(field, "x")
    kept_view.choose("shop")
    assert address.one("data") == "shop"
    assert [address.one(field) for field in ("base", "system", "q", "metric")] == [
        None, None, None, "x"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "notes", "said"),
    [(0, 0, []), (1, 0, ["1 run goes with it."]), (0, 1, ["3 notes and corrected labels go with "
     "it."]), (2, 1, ["2 runs go with it.", "3 notes and corrected labels go with it."])],
)  # fmt: skip
def test_what_goes_with_a_data_set(monkeypatch, runs, notes, said):
    store = SimpleNamespace(runs=lambda _id: [None] * runs)
    monkeypatch.setattr(dataset_list, "workspace", lambda: store)
    for name in ("Notes", "RunNotes"):
        found = SimpleNamespace(all=lambda _id: [None] * notes)
        monkeypatch.setattr(dataset_list, name, lambda _store, found=found: found)
    layer = SimpleNamespace(layer=lambda _id: SimpleNamespace(count=notes))
    monkeypatch.setattr(dataset_list, "Corrections", lambda _store: layer)
    found = dataset_list._what_goes(SimpleNamespace(id="shop", name="Shop"))
    assert found[0].startswith("Shop will be deleted permanently.") and found[1:] == said


def test_an_import_says_what_was_new():
    nothing = dict.fromkeys(
        ("datasets", "runs", "notes", "corrections", "explanations", "judges", "settings"), 0
    )
    assert sharing_files._added(SimpleNamespace(added=nothing)) == (
        "All of it is in this workspace already."
    )
    some = nothing | {"runs": 2, "judges": 1, "settings": 1}
    assert sharing_files._added(SimpleNamespace(added=some)) == (
        "Imported: 2 runs, 1 judge, scenarios, prices or targets."
    )


@pytest.mark.parametrize(
    ("name", "first", "given"),
    [(" Shop ", "b.trec", ("Shop", "b.trec")), ("  ", "", (None, None))],
)
def test_what_is_left_empty_is_found_out_from_the_files(monkeypatch, name, first, given):
    read = {}

    def reading(_workspace, _files, **choices):
        read.update(choices)
        return SimpleNamespace(wait=lambda _seconds: None, running=False, result=lambda: None)

    monkeypatch.setattr(uploads, "_settle", lambda _upload, outcome: outcome())
    monkeypatch.setattr(uploads, "Reading", reading)
    monkeypatch.setattr(uploads, "workspace", lambda: None)
    uploads._read(uploads._Upload((), name, first, None, "mean", "majority"))
    assert (read["name"], read["first_stage"]) == given
    assert (read["conflict"], read["annotators"], read["ask"]) == ("mean", "majority", True)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("datasets", "1 data set"),
        ("runs", "1 run"),
        ("notes", "1 note"),
        ("corrections", "1 corrected label"),
        ("explanations", "1 explanation"),
    ],
)
def test_each_kind_of_what_was_new_is_called_by_its_name(kind, said):
    taken = TakenIn(added=Counter({kind: 1}))
    assert sharing_files._added(taken) == f"Imported: {said}."


@pytest.mark.parametrize(
    ("count", "lines", "last"), [(0, 0, ""), (20, 20, "- n 19"), (21, 21, "- and 1 more")]
)
def test_of_what_differs_twenty_are_named_once(paper, session, count, lines, last):
    drawn = paper(sharing_files)
    drawn.session_state = session
    findings = [Finding("warning", "differs", "n {at}", {"at": at}) for at in range(count)]
    session["sharing.said"] = TakenIn(findings=findings)
    sharing_files._said()
    assert drawn.of("success") == ["All of it is in this workspace already."]
    told = [line for text in drawn.of("warning") for line in text.splitlines()[2:]]
    assert (len(told), told[-1] if told else "") == (lines, last)
    sharing_files._said()
    assert len(drawn.of("success")) == 1


@pytest.mark.parametrize(
    ("chosen", "name", "disabled"),
    [
        (["a", "b"], "rankdash_workspace.rankdash.zip", False),
        (["b"], "rankdash_beta_workspace.rankdash.zip", False),
        ([], "rankdash_workspace.rankdash.zip", True),
    ],
)
def test_what_is_exported_is_named_where_it_is_one_data_set(
    paper, monkeypatch, chosen, name, disabled
):
    drawn = paper(sharing_files)
    drawn.answers["multiselect"] = chosen
    monkeypatch.setattr(sharing_files, "exported", list)
    monkeypatch.setattr(sharing_files.stored, "damage", lambda _dataset: None)
    monkeypatch.setattr(sharing_files.stored, "damaged", lambda _dataset: {})
    sharing_files._export(
        [SimpleNamespace(id="a", name="Alpha"), SimpleNamespace(id="b", name="Beta")]
    )
    (asked,) = [settings for kind, _first, settings in drawn.drawn if kind == "multiselect"]
    assert asked["default"] == ["a", "b"]
    assert [asked["format_func"](each) for each in "ab"] == ["Alpha", "Beta"]
    (button,) = [settings for kind, _first, settings in drawn.drawn if kind == "download_button"]
    assert button["data"]() == chosen
    assert (button["file_name"], button["disabled"]) == (name, disabled)


@pytest.mark.parametrize(
    ("rows", "shown_only", "parts"),
    [([], True, ""), (["x"], True, "e"), ([], False, "si"), (["x"], False, "esi")],
)
def test_a_workspace_that_is_only_shown_takes_nothing_in(monkeypatch, rows, shown_only, parts):
    drawn = []
    monkeypatch.setattr(sharing_files, "read_only", lambda: shown_only)
    for name in ("_export", "_said", "_import"):
        monkeypatch.setattr(sharing_files, name, lambda *_a, name=name: drawn.append(name[1]))
    sharing_files.draw(rows)
    assert "".join(drawn) == parts
