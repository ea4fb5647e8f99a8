"""Text from files is never markup."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rankdash.ui.widgets import text
from rankdash.ui.widgets.text import html_safe, markdown_safe, shortened

HOSTILE = (
    "![x](http://evil.example/a.png) <script>alert(1)</script> [a](javascript:b) `c` $d$ "
    "https://evil.example :material/home: **bold**"
)


def test_markdown_in_a_name_is_shown_as_typed():
    rendered = MarkdownIt("gfm-like").render(markdown_safe(HOSTILE, 500))
    assert "<img" not in rendered
    assert "<script" not in rendered
    assert "<a " not in rendered
    assert "<strong" not in rendered
    shown = html.unescape(re.sub("<[^>]+>", "", rendered)).strip()
    assert shown.replace("\u2060", "") == HOSTILE


def test_an_address_is_broken_invisibly_because_streamlit_links_it_after_unescaping():
    for address in ("http://evil.example", "www.evil.example", "me@evil.example"):
        plain = markdown_safe(address).replace("\\", "")
        assert plain != address
        assert plain.replace("\u2060", "") == address


@given(st.text(max_size=80))
def test_no_text_becomes_markup(text):
    rendered = MarkdownIt("commonmark").render(markdown_safe(text))
    assert re.sub(r"</?p>", "", rendered).count("<") == 0


def test_direction_overrides_and_control_characters_are_dropped():
    assert markdown_safe("safe\u202eexe.txt\x00") == r"safeexe\.txt"


@given(st.text())
def test_html_keeps_no_tag_and_no_quote(text):
    safe = html_safe(text)
    assert not set(safe) & set("<>\"'")
    assert "&" not in re.sub(r"&(amp|lt|gt|quot|#x27);", "", safe)


def test_what_is_cut_says_so():
    assert shortened("abcdef", 4) == "abc…"
    assert shortened("abcd", 4) == "abcd"


@pytest.mark.parametrize(
    ("names", "height"),
    [
        ([], None),
        (["short", "x" * 26], None),
        # Streamlit wraps only above 64 pixels.
        (["short", "x" * 27], 66),
        (["x" * 120], 112),
        (["重" * 40], 92),
    ],
)
def test_rows_of_a_grid_are_as_high_as_the_longest_name_needs(names, height):
    assert text.name_rows(names) == height


def test_a_long_name_wraps_in_a_table_and_a_short_one_stays_on_its_line():
    long = "<b>" + "n" * 117
    table = text.table_html(("system", "value"), [(long, "0.5"), ("BM25 without stemming", "1")])
    first, second = re.findall("<td(.*?)>(.*?)</td><td", table)
    assert first == ("", "&lt;b&gt;" + "n" * 117)
    assert second == (" class='rd-short'", "BM25 without stemming")
    assert "first-child" not in table


def test_a_cell_of_twelve_signs_stays_on_its_line_and_an_empty_column_is_left_out():
    table = text.table_html(
        ("system", "value", "none", "some"),
        [("a", "x" * 12, "", ""), ("b", "x" * 13, "", "y")],
    )
    cells = re.findall("<td(.*?)>(.*?)</td>", table)
    assert [bool(kind) for kind, said in cells if said.startswith("x")] == [True, False]
    heads = [said for _kind, said in re.findall("<th(.*?)>(.*?)</th>", table)]
    assert heads == ["system", "value", "some"]


def test_names_that_were_cut_are_listed_in_full_and_escaped():
    assert text.names_help(["x" * 26], 26) is None
    assert text.names_help(["a", "*" * 27], 26) == "Names in full:\n\n- " + "\\*" * 27
    long = "*" * 159 + "a"
    assert text.name_safe(long) == "\\*" * 159 + "a"
    assert text.name_safe("*" * 161).count("*") == 160 - 1
