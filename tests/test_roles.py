"""Each module of a feature imports what its role may import (see docs/architecture.md)."""

from pathlib import Path

from tests.roles import LOW_TO_HIGH, PACKAGE, SURFACES, imports, is_page, role

FILES = sorted(PACKAGE.rglob("*.py"))
FEATURES = [each for each in FILES if "features" in each.parts]


def height(file: Path) -> int:
    return next(n for n, roles in enumerate(LOW_TO_HIGH) if role(file) in roles)


def test_only_what_draws_imports_the_library_it_draws_with():
    found = {file: {each.partition(".")[0] for each in imports(file)} for file in FILES}
    assert [each for each in FILES if "streamlit" in found[each] and not is_page(each)] == []
    drawing = ("charts", "kit.drawing", "kit.html")
    assert [each for each in FILES if "plotly" in found[each] and role(each) not in drawing] == []


def test_numbers_import_no_words_and_words_no_charts_and_only_surfaces_import_surfaces():
    modules = {".".join(("rankdash", *each.relative_to(PACKAGE).with_suffix("").parts)): each
               for each in FEATURES}  # fmt: skip
    up = [
        (str(file.relative_to(PACKAGE)), name)
        for file in FEATURES
        for name in imports(file)
        for module in (name, name.rpartition(".")[0])
        if module in modules and height(modules[module]) > height(file)
    ]
    assert up == []
    assert {role(each) for each in FEATURES} == {*SURFACES, "numbers", "words", "charts"}
