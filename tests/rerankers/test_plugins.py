"""Plugins: the example of the docs works; a broken plugin is reported and stops nothing."""

import os
import re
import sys
from importlib.metadata import EntryPoint

import pytest

from rankdash.core import rerankers
from rankdash.core.rerankers import Corpus, Request, create, get, kinds, problems
from tests.approved import masked, table
from tests.documented import plugin

BUILT_IN = {kind.name for kind in kinds()}


@pytest.fixture
def plug(tmp_path, monkeypatch):
    """Name files with these contents in the environment."""
    # A file with the same length and second would be confused with the compiled one.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def named(**contents):
        paths = [tmp_path / f"{name}.py" for name in contents]
        for path, text in zip(paths, contents.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        monkeypatch.setenv(rerankers.PLUGINS_VARIABLE, os.pathsep.join(map(str, paths)))
        rerankers.add_plugins([])
        return paths

    yield named
    monkeypatch.undo()
    rerankers.add_plugins([])


def test_the_example_of_the_docs_is_a_reranker_of_about_twenty_lines(plug):
    code = plugin()
    assert len(code.splitlines()) <= 26
    plug(overlap=code)
    assert problems() == []
    asked = Request("q", "Long text", ["a", "b"], ["long text", "text"])
    marks = set()
    for case, scores in (("no", [1.0, 0.5]), ("yes", [0.5, 0.5])):
        made = create("overlap", {"case": case})
        made.prepare(Corpus(["a", "b"], ["long text", "text"]))
        assert made.score([asked])[0].scores.tolist() == scores
        marks.add(made.fingerprint())
    assert len(marks) == 2
    assert (
        "overlap" in next(spec for spec in get("cascade").settings if spec.name == "first").choices
    )
    both = create("cascade", {"first": "overlap", "second": "bm25", "first_settings": "case=yes"})
    both.prepare(Corpus(["a", "b"], ["long text", "text"]))
    assert both.score([asked])[0].error == ""


def named(name):
    return plugin().replace('"overlap"', f'"{name}"')


BROKEN = {
    "no Python": "def",
    "an import": "import nothing_of_the_kind",
    "an exit": "raise SystemExit(3)",
    "an error": "raise ValueError('no\\nmore')",
    "nothing": "",
    "another type": "KIND = 3",
    **{f"the name {name!r}": named(name)
       for name in ("bm25", "fusion", "overlap", "A B", "a--b", "-a", "a_b", "a-", "Ab", "")},
    "a default": plugin().replace("False", "7").replace(
        'case differ."', 'case differ.", within=(0, 3)'),
}  # fmt: skip


def test_a_broken_plugin_is_named_with_the_reason_and_the_others_work(plug, tmp_path, approved):
    cases = {}
    for name, text in BROKEN.items():
        before = {name for name in sys.modules if name.startswith("rankdash_plugin_")}
        plug(good=plugin(), broken=text)
        assert {kind.name for kind in kinds()} == BUILT_IN | {"overlap"}
        assert get("overlap").title == "Shared words"
        (cases[name],) = map(str, problems())
        after = {name for name in sys.modules if name.startswith("rankdash_plugin_")} - before
        assert not any("broken" in name for name in after), "it leaves no module"
    (tmp_path / "plugin.txt").write_text(plugin())
    for name in ("gone.py", "plugin.txt"):
        (cases[name],) = map(str, rerankers.find_plugins([str(tmp_path / name)], [])[1])
    approved("rerankers/plugins", masked(table(cases), folder=re.escape(str(tmp_path))))


def test_a_file_may_offer_several_and_one_named_twice_is_loaded_once(plug):
    second = plugin().replace('"overlap"', '"a-2"').replace("KIND =", "OTHER =")
    (path,) = plug(both=f"{plugin()}\n{second}\nKINDS = [KIND, OTHER]\n")
    found, refused = rerankers.find_plugins([str(path), str(path)], ["taken"])
    assert [kind.name for kind in found] == ["overlap", "a-2"]
    assert refused == []


def test_files_are_named_in_the_environment_as_in_path(monkeypatch):
    monkeypatch.setenv(rerankers.PLUGINS_VARIABLE, os.pathsep.join(["a.py", "", " ", "b c.py"]))
    assert rerankers.files_in_environment() == ["a.py", "b c.py"]
    monkeypatch.delenv(rerankers.PLUGINS_VARIABLE)
    assert rerankers.files_in_environment() == []


def test_an_entry_point_of_an_installed_package(monkeypatch):
    entry = EntryPoint(
        "lexical", "rankdash.core.rerankers.kinds.bm25:KIND", rerankers.PLUGINS_GROUP
    )
    gone = EntryPoint("gone", "no_such_package:KIND", rerankers.PLUGINS_GROUP)
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda group: [entry, gone] if group == rerankers.PLUGINS_GROUP else [],
    )
    found, refused = rerankers.find_plugins([], [])
    assert [kind.name for kind in found] == ["bm25"]
    assert "no_such_package" in str(refused[0])
