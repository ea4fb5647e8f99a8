"""Planted faults differ from the source in one place and compile."""

import ast

import pytest

from tests.planted import ROOT, faults, own_tests

SOURCE = '''"""Größe."""
def half(size, *, up=True, deep=None):
    if size < 2 and not deep:
        return round(size / 2, ndigits=1)
    return "ä" if up else half(size, up=False, deep=size)
'''.encode()
PLANTED = {
    (3, "size < 2", "(size <= 2)"),
    (3, "size < 2 and not deep", "(size < 2 or not deep)"),
    (3, "2", "3"),
    (3, "not deep", "deep"),
    (4, "size / 2", "(size * 2)"),
    (4, "2", "3"),
    (4, "round(size / 2, ndigits=1)", "round(size / 2)"),
    (4, "1", "2"),
    (5, '"ä" if up else half(size, up=False, deep=size)',
     "(half(size, up=False, deep=size) if up else 'ä')"),
    (5, "half(size, up=False, deep=size)", "half(size, deep=size)"),
    (5, "False", "True"),
}  # fmt: skip


def test_each_kind_of_expression_gets_one_fault():
    made = list(faults("half.py", SOURCE, {3, 4, 5}))
    assert {(each.line, each.before, each.after) for each in made} == PLANTED
    assert len(made) == len(PLANTED)
    for each in made:
        planted = each.planted(SOURCE)
        assert ast.unparse(ast.parse(planted)) != ast.unparse(ast.parse(SOURCE))
        pairs = zip(planted.split(b"\n"), SOURCE.split(b"\n"), strict=True)
        assert [n for n, (now, was) in enumerate(pairs, 1) if now != was] == [each.line]


def test_only_the_lines_that_changed_get_a_fault():
    assert {each.line for each in faults("half.py", SOURCE, {2, 4})} == {2, 4}


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("rankdash/core/metrics/definitions.py", "tests/metrics"),
        ("rankdash/core/readers/parse/none/deep.py", "tests/readers/parse"),
        ("rankdash/core/workspace/none/deep.py", "tests/store"),
        ("rankdash/core/words/judged.py", "tests/words"),
        ("rankdash/features/cost/charts.py", "tests/charts"),
        ("rankdash/features/run/command_rerank.py", "tests/cli"),
        ("rankdash/core/base/rules.py", "tests"),
        ("rankdash/features/judge/asking.py", "tests"),
    ],
)
def test_the_tests_of_the_nearest_folder_run_first(file, tests):
    assert own_tests(file) == tests
    assert (ROOT / tests).is_dir()
