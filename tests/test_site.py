"""The site of the docs: two languages, a search in each, no dead link, no external resource."""

import json
import re
import tomllib

import pytest

from tests import site
from tests.documented import DOCS, text_of

FOLDERS = ("", "tasks/", "statistics/", "engines/")
PAGES = sorted(
    str(page.relative_to(DOCS).with_suffix(""))
    for page in (page for each in FOLDERS for page in DOCS.glob(f"{each}*.md"))
    if not page.name.endswith(".zh.md")
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "site"
    problems = site.build(folder)
    assert problems == ""
    return folder


def test_every_page_is_in_the_menu():
    sections = tomllib.loads(text_of(DOCS / "site.toml"))["sections"]
    listed = [page for section in sections for page in section["pages"]]
    assert sorted(listed) == sorted([*PAGES, "api", "contributing", "security", "changelog"])


def test_each_language_has_every_page_and_its_own_search(built):
    for page in [*PAGES, "api"]:
        for folder in (built, built / "zh"):
            assert (folder / f"{page}.html").is_file()
    for folder, word in ((built, "Glossary"), (built / "zh", "术语表")):
        index = json.loads(text_of(folder / "search.json"))
        assert any(each["title"] == word for each in index["items"])


def test_pages_load_nothing_from_other_sites(built):
    for page in [built / "index.html", built / "zh" / "tasks" / "compare.html"]:
        loaded = re.findall(
            r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"?([^\" >]+)", text_of(page)
        )
        assert loaded and not [each for each in loaded if re.match(r"(?:https?:)?//", each)]


def test_a_dead_link_ends_the_build(tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# A page\n\n[gone](gone.md), [an anchor](index.md#gone)\n")
    (docs / "site.toml").write_text('[[sections]]\ntitles = ["A", "B"]\npages = ["index"]\n')
    monkeypatch.setattr(site, "DOCS", docs)
    monkeypatch.setattr(site, "BESIDE", {})
    problems = site.build(tmp_path / "site")
    assert "page does not exist" in problems and "anchor" in problems
    assert not (tmp_path / "site").exists()
