"""Numbers and times as a reader writes them; what does not exist is a dash."""

import math
import shutil
from importlib.util import module_from_spec, spec_from_file_location

import pytest
import streamlit as st

from rankdash import i18n
from rankdash.charts import style
from rankdash.errors import FormatError, StoreError
from rankdash.ui.state.language import STATE
from rankdash.words.money import money


@pytest.fixture(params=["en", "zh"])
def language(request):
    st.session_state[STATE] = request.param
    yield request.param
    st.session_state[STATE] = "en"


@pytest.mark.parametrize(
    ("value", "digits", "said"),
    [(1234.5, 0, "1,234"), (0.45678, 3, "0.457"), (-0.1, 2, "-0.10"), (1e6, 0, "1,000,000")],
)
def test_numbers(value, digits, said):
    assert i18n.number(value, digits) == said


@pytest.mark.parametrize("value", [-0.0245, 0.0245, 0.5, 1.5, 2.5, 0.1235, 2 / 3])
@pytest.mark.parametrize("digits", [0, 1, 3])
def test_a_number_on_a_page_is_the_number_on_its_chart(value, digits):
    assert i18n.number(value, digits) == style.number(value, digits).replace("−", "-")


def test_what_rounds_to_zero_has_no_sign():
    assert i18n.number(-0.0004) == i18n.number(-0.0) == "0.000"
    assert i18n.number(-0.0006) == "-0.001"
    assert i18n.percent(-0.004) == i18n.percent(-0.0) == "0%"
    assert i18n.percent(-0.006) == "-1%"


def test_the_largest_numbers_are_written_without_an_exponent():
    assert i18n.number(2.0**112, 0) == "5,192,296,858,534,827,628,530,496,329,220,096"
    assert i18n.percent(1e30).startswith("100,000,000,")
    assert i18n.quantity(1e12) == "1,000,000,000,000"
    assert i18n.quantity(1e-7) == "0.0000001"
    assert i18n.quantity(1234567.0, 6) == "1,234,570"


@pytest.mark.parametrize(
    ("value", "said"),
    [(1234567.0, "1234567"), (2.0**112, "5192296858534827628530496329220096"), (1e-5, "0.00001"),
     (2 / 3, "0.666667"), (3.0, "3"), (-0.0, "0"), (-0.5, "-0.5"), (math.nan, "–")],
)  # fmt: skip
def test_a_number_that_was_given_is_written_as_it_was(value, said):
    assert i18n.plain(value) == said


def test_an_amount_beyond_its_digits_is_only_said_to_be_more():
    assert money(1e15, "USD") == "$1,000,000,000,000,000"
    assert money(5.1e33, "USD") == "> $1,000,000,000,000,000"
    assert money(-5.1e33, "USD") == "< -$1,000,000,000,000,000"


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_a_number_that_does_not_exist_is_a_dash(value):
    assert i18n.number(value) == i18n.percent(value) == i18n.duration(value) == "–"


@pytest.mark.parametrize(
    ("value", "said", "share"),
    [(-0.0004, "0.000", "0%"), (-0.0, "0.000", "0%"), (-0.0006, "-0.001", "0%"),
     (-0.0049, "-0.005", "0%"), (-0.0051, "-0.005", "-1%")],
)  # fmt: skip
def test_what_rounds_to_nothing_has_no_sign(value, said, share):
    assert (i18n.number(value), i18n.percent(value)) == (said, share)
    assert style.number(value) == said.replace("-", "−")


def test_a_change_has_its_sign_unless_it_rounds_to_nothing():
    assert i18n.signed(0.1234) == "+0.123"
    assert i18n.signed(-0.1234) == "-0.123"
    assert i18n.signed(0.0004) == i18n.signed(-0.0004) == i18n.signed(0.0) == "0.000"
    assert i18n.signed(-0.0) == "0.000"
    assert i18n.signed_percent(0.123, 1) == "+12.3%"
    assert i18n.signed_percent(0.0004, 1) == i18n.signed_percent(-0.0004, 1) == "0.0%"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.41, "0.4 s"), (12, "12 s"), (150, "2 min"), (3600 * 2 + 300, "2 h 5 min")],
)
def test_durations_are_read_at_a_glance(seconds, said):
    assert i18n.duration(seconds) == said


def test_an_error_names_file_line_and_remedy(language):
    wanted = {
        "en": "a.csv, line 7: 3 rows are bad. Mend 3.",
        "zh": "a.csv，第 7 行：3 rows are bad.Mend 3.",
    }
    error = FormatError("{n} rows are bad.", remedy="Mend {n}.", file="a.csv", line=7, n=3)
    assert i18n.error_text(error) == wanted[language]


def test_braces_in_what_the_user_gave_are_no_fields():
    assert i18n.error_text(StoreError("No {name!r} here.", name="{x}")) == "No '{x}' here."


def test_an_unknown_sentence_stays_english(language):
    assert i18n.gettext("A sentence that no catalogue has: {n}.", n=1) == (
        "A sentence that no catalogue has: 1."
    )


POLISH = r"""
msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\n"
"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) "
"? 1 : 2);\n"

msgid "{n} file of {name}"
msgid_plural "{n} files of {name}"
msgstr[0] "{n} plik z {name}"
msgstr[1] "{n} pliki z {name}"
msgstr[2] "{n} plików z {name}"
"""


@pytest.fixture
def polish(tmp_path):
    """The module beside another folder of catalogues."""
    (tmp_path / "locale").mkdir()
    (tmp_path / "locale" / "pl.po").write_text(POLISH, encoding="utf-8")
    spec = spec_from_file_location("polish", shutil.copy(i18n.__file__, tmp_path))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.speaking("pl"):
        yield module


@pytest.mark.parametrize(
    ("n", "said"),
    [(1, "1 plik"), (3, "3 pliki"), (5, "5 plików"), (12, "12 plików"), (0, "0 plików")],
)
def test_a_third_language_is_a_catalogue_with_the_rule_of_its_plurals(polish, n, said):
    assert {code: polish.language_name(code) for code in polish.LANGUAGES} == {
        "en": "English",
        "pl": "Polski",
    }
    files = polish.ngettext("{n} file of {name}", "{n} files of {name}", n, name="x")
    assert files == f"{said} z x"


def test_what_a_catalogue_lacks_is_counted_in_english(polish):
    assert [polish.ngettext("{n} run", "{n} runs", n) for n in (1, 3)] == ["1 run", "3 runs"]


@pytest.mark.parametrize(("code", "said"), [("en", "One. Two."), ("zh", "One.Two.")])
def test_sentences_are_joined_as_the_language_does(code, said):
    with i18n.speaking(code):
        assert i18n.paragraph(["One.", "Two."]) == said
        assert i18n.paragraph([]) == ""


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("BM25", "MiniLM", "BM25 对比 MiniLM"),
        ("初排", "MiniLM", "初排对比 MiniLM"),
        ("融合（RRF）", "**重排序**", "融合（RRF）对比**重排序**"),
    ],
)
def test_no_blank_stands_between_han_characters_around_a_name(one, other, said):
    with i18n.speaking("zh"):
        text = i18n.gettext("{system} against {baseline}", system=one, baseline=other)
    assert text == said


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("BM25", "重排序", "**BM25** 对比**重排序**"),
        ("初排", "MiniLM", "**初排**对比 **MiniLM**"),
        # Without its blank the asterisks of what ends or begins with a bracket would be shown.
        ("融合（RRF）", "重排序", "**融合（RRF）** 对比**重排序**"),
        ("初排", "（二）", "**初排**对比 **（二）**"),
    ],
)
def test_bold_names_stay_bold_between_han_characters(one, other, said):
    with i18n.speaking("zh"):
        bold = i18n.gettext("**{system}** against **{baseline}**", system=one, baseline=other)
    assert bold == said


@pytest.mark.parametrize("n", [1, 2, 3])
def test_lists_are_joined_as_the_language_does(n):
    names = ["first", "second", "third"][:n]
    assert i18n.all_of(names) == ["first", "first and second", "first, second, and third"][n - 1]
    with i18n.speaking("zh"):
        assert i18n.enumerated(names) == "、".join(names)
        assert i18n.all_of(["3 条", "甲", "乙"][:n]) == ["3 条", "3 条和甲", "3 条、甲和乙"][n - 1]
