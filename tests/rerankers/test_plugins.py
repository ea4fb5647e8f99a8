"""Plugins: the example of the docs works, a broken one is told and stops nothing."""

import os
import sys
from importlib.metadata import EntryPoint

import pytest

from rankdash import rerankers
from rankdash.errors import SettingError
from rankdash.rerankers import Corpus, Request, create, get, kinds, plugins, problems
from tests.documented import plugin

BUILT_IN = {kind.name for kind in kinds()}


@pytest.fixture
def plug(tmp_path, monkeypatch):
    """Names files of these contents in the environment."""

    def named(**contents):
        paths = [tmp_path / f"{name}.py" for name in contents]
        for path, text in zip(paths, contents.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        monkeypatch.setenv(plugins.VARIABLE, os.pathsep.join(map(str, paths)))
        rerankers.add_plugins([])
        return paths

    yield named
    monkeypatch.undo()
    rerankers.add_plugins([])


def test_the_example_of_the_docs_is_a_reranker_of_about_twenty_lines(plug):
    code = plugin()
    assert len(code.splitlines()) <= 23
    plug(shortest=code)
    assert problems() == []
    made = create("shortest", {"longest": "no"})
    made.prepare(Corpus(["a", "b"], ["long text", "text"]))
    asked = Request("q", "query", ["a", "b"], ["long text", "text"])
    assert made.score([asked])[0].scores.tolist() == [-9.0, -4.0]
    assert (
        "shortest" in next(spec for spec in get("cascade").settings if spec.name == "first").choices
    )
    both = create(
        "cascade", {"first": "shortest", "second": "bm25", "first_settings": "longest=yes"}
    )
    both.prepare(Corpus(["a", "b"], ["long text", "text"]))
    assert both.score([asked])[0].error == ""


BROKEN = {
    "syntax": ("def", "SyntaxError"),
    "imports": ("import nothing_of_the_kind", "nothing_of_the_kind"),
    "leaves": ("raise SystemExit(3)", "SystemExit"),
    "empty": ("", "neither KIND nor KINDS"),
    "other": ("KIND = 3", "RerankerKind is needed, not int"),
    "taken": (plugin().replace('"shortest"', '"bm25"'), "'bm25' is taken"),
    "reserved": (plugin().replace('"shortest"', '"fusion"'), "'fusion' is taken"),
    "shouting": (plugin().replace('"shortest"', '"A B"'), "small letters"),
    "default": (
        plugin().replace("False", "7").replace('way round."', 'way round.", within=(0, 3)'),
        "out of range",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_named_with_the_reason_and_the_others_work(plug, name):
    text, reason = BROKEN[name]
    plug(**{name: text, "good": plugin()})
    assert {kind.name for kind in kinds()} == BUILT_IN | {"shortest"}
    (problem,) = problems()
    assert f"{name}.py is not loaded" in str(problem)
    assert reason in str(problem)


def test_a_file_that_is_not_there_is_told(plug, tmp_path):
    plug()
    rerankers.add_plugins([])
    found = plugins.find([str(tmp_path / "gone.py")], [])
    assert str(found.problems[0]) == (
        f"The plugin {tmp_path / 'gone.py'} is not loaded: there is no such file. Repair it, or "
        "start rankdash without it."
    )


def test_a_file_may_offer_several_and_one_named_twice_is_loaded_once(plug):
    second = plugin().replace('"shortest"', '"a-2"').replace("KIND =", "OTHER =")
    (path,) = plug(both=f"{plugin()}\n{second}\nKINDS = [KIND, OTHER]\n")
    found = plugins.find([str(path), str(path)], ["taken"])
    assert [kind.name for kind in found.kinds] == ["shortest", "a-2"]
    assert found.problems == ()


@pytest.mark.parametrize("name", ["a--b", "-a", "a_b", "a-", "Ab", ""])
def test_a_name_is_of_small_letters_digits_and_hyphens_between_them(plug, name):
    (path,) = plug(named=plugin().replace('"shortest"', f'"{name}"'))
    (problem,) = plugins.find([str(path)], []).problems
    assert f"the name {name!r} may have" in str(problem)


def test_a_file_of_another_kind_is_no_plugin_and_a_broken_one_leaves_no_module(tmp_path):
    for name, text in (("plugin.txt", plugin()), ("broken.py", "raise ValueError('no\\nmore')")):
        (tmp_path / name).write_text(text)
    before = {name for name in sys.modules if name.startswith("rankdash_plugin_")}
    found = plugins.find([str(tmp_path / "plugin.txt"), str(tmp_path / "broken.py")], [])
    assert "its name has to end in .py" in str(found.problems[0])
    assert "is not loaded: ValueError: no." in str(found.problems[1])
    assert before == {name for name in sys.modules if name.startswith("rankdash_plugin_")}


def test_files_are_named_in_the_environment_as_in_path(monkeypatch):
    monkeypatch.setenv(plugins.VARIABLE, os.pathsep.join(["a.py", "", " ", "b c.py"]))
    assert plugins.files_in_environment() == ["a.py", "b c.py"]
    monkeypatch.delenv(plugins.VARIABLE)
    assert plugins.files_in_environment() == []


def test_two_plugins_of_one_name(plug):
    plug(one=plugin(), two=plugin())
    assert "'shortest' is taken" in str(problems()[0])
    assert get("shortest").title == "Shortest first"


def test_an_entry_point_of_an_installed_package(monkeypatch):
    entry = EntryPoint("lexical", "rankdash.rerankers.kinds.bm25:KIND", plugins.GROUP)
    gone = EntryPoint("gone", "no_such_package:KIND", plugins.GROUP)
    monkeypatch.setattr(
        "importlib.metadata.entry_points",
        lambda group: [entry, gone] if group == plugins.GROUP else [],
    )
    found = plugins.find([], [])
    assert [kind.name for kind in found.kinds] == ["bm25"]
    assert "no_such_package" in str(found.problems[0])


def test_without_the_plugin_its_name_is_unknown():
    with pytest.raises(SettingError, match="no reranker 'shortest'"):
        get("shortest")
