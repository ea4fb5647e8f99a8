"""Text from files is never markup."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rankdash.kit.widgets import text as widgets_text
from rankdash.kit.widgets.text import html_safe, markdown_safe, paragraphs_safe, shortened

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
        (["short", "x" * 40], None),
        # Streamlit wraps only above 64 pixels.
        (["short", "x" * 41], 66),
        (["x" * 180], 112),
        (["重" * 70], 92),
    ],
)
def test_rows_of_a_grid_are_as_high_as_the_longest_name_needs(names, height):
    assert widgets_text.name_rows(names) == height


def test_cells_wrap_between_words_numbers_and_intervals_never_and_long_ones_anywhere():
    cells = {
        "0.617 … 0.714 ": "rd-short", "x" * 14: "rd-short", "x" * 15: "rd-brief",
        "BM25 without stemming": "rd-brief", "x" * 26: "rd-brief", "x" * 27: None,
        "重" * 7: "rd-short", "重" * 8: "rd-brief", "重" * 14: None, "<b>" + "n" * 117: None,
    }  # fmt: skip
    table = widgets_text.table_html(("system",), [(cell,) for cell in cells])
    found = re.findall(r"<td(?: class='(.*?)')?>(.*?)</td>", table)
    assert {html.unescape(said): kind or None for kind, said in found} == cells
    assert "&lt;b&gt;n" in table


def test_an_empty_column_is_left_out():
    rows = [("a", "x", "", ""), ("b", "x", "", "y")]
    table = widgets_text.table_html(("system", "value", "none", "some"), rows)
    heads = [said for _kind, said in re.findall("<th(.*?)>(.*?)</th>", table)]
    assert heads == ["system", "value", "some"]


def test_names_that_were_cut_are_listed_in_full_and_escaped():
    assert widgets_text.names_help(["x" * 26], 26) is None
    assert widgets_text.names_help(["a", "*" * 27], 26) == "Full names:\n\n- " + "\\*" * 27
    long = "*" * 159 + "a"
    assert widgets_text.name_safe(long) == "\\*" * 159 + "a"
    assert widgets_text.name_safe("*" * 161).count("*") == 160 - 1


def test_paragraphs_keep_headings_lists_and_emphasis_and_nothing_else():
    own = f"# Title\n\n1. one *two*\n- three **four**\n  - five\n\n> said\n\n{HOSTILE}\nnext line"
    rendered = MarkdownIt("gfm-like").render(paragraphs_safe(own))
    tags = {"h4", "ol", "ul", "li", "em", "strong", "blockquote", "p", "br"}
    assert set(re.findall(r"</?([a-z0-9]+)", rendered)) == tags
    assert rendered.count("<strong>") == 2 and "<h4>Title</h4>" in rendered
    assert "<br />\nnext line" in rendered
    for address in ("http://evil.example", "www.evil.example", "me@evil.example"):
        assert paragraphs_safe(address).replace("\\", "") != address


@given(st.text(st.sampled_from("ab1 \n\t#*-_.>)(+![]<`~|:$&\\/=@\"'"), max_size=60))
def test_no_paragraph_holds_what_loads_or_links(text):
    rendered = MarkdownIt("gfm-like").render(paragraphs_safe(text))
    assert set(re.findall(r"<([a-z]+)", rendered)) <= {
        *("p", "br", "h", "ul", "ol", "li", "em", "strong", "blockquote", "hr", "pre", "code")
    }
