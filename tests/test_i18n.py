"""Numbers, times, names and errors in the format of each language."""

import json
import math
import re
import shutil
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from rankdash.core import rerankers
from rankdash.core.base import i18n
from rankdash.core.base.errors import DataError, FormatError, Phrase, RankdashError, StoreError
from rankdash.core.base.i18n import problem_text
from rankdash.core.readers import Source
from rankdash.core.readers.checks.check import CheckReport
from rankdash.core.readers.loading import examine, load
from rankdash.core.value.prices import parse_prices
from rankdash.core.words.prices import money
from rankdash.kit.drawing import style
from tests.approved import table

# Three words of English in a row, not from a library: a sentence that was not translated.
ENGLISH = re.compile(r"[A-Za-z]{2,} [a-z]+ [a-z]+")
NUMBERS = {
    "number": [
        *((1234.5, 0), (0.45678, 3), (-0.1, 2), (1e6, 0), (2.0**112, 0)),
        # A number that is rounded to zero has no sign.
        *((-0.0004,), (-0.0006,), (-0.0,), (-0.0049,), (-0.0051,)),
    ],
    "percent": [(-0.004,), (-0.006,), (-0.0,), (-0.0049,), (1e30,)],
    "share_percent": [(0.9988,), (0.99999,), (0.995,), (0.004,), (0.0,), (1.0,), (0.5,), (None,)],
    "quantity": [(1e12,), (1e-7,), (1234567.0, 6)],
    "plain": [(1234567.0,), (2.0**112,), (1e-5,), (2 / 3,), (3.0,), (-0.0,), (-0.5,), (math.nan,)],
    "signed": [(0.1234,), (-0.1234,), (0.0004,), (-0.0004,), (0.0,), (-0.0,)],
    "signed_percent": [(0.123, 1), (0.0004, 1), (-0.0004, 1)],
    "duration": [(0.41,), (12,), (150,), (3600 * 2 + 300,), (math.nan,)],
}
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


@pytest.fixture(params=["en", "zh"])
def language(request):
    with i18n.speaking(request.param):
        yield request.param


def test_numbers_and_amounts(approved):
    said = [
        f"{name}{(*given,)} = {getattr(i18n, name)(*given)}"
        for name, cases in NUMBERS.items()
        for given in cases
    ]
    # An amount with too many digits is shown as a lower limit.
    said += [f"money({value}) = {money(value, 'USD')}" for value in (1e15, 5.1e33, -5.1e33)]
    approved("i18n/numbers", "\n".join(said))


def test_a_number_on_a_page_is_the_number_on_its_chart_and_a_dash_if_it_does_not_exist():
    for value in (-0.0245, 0.0245, 0.5, 1.5, 2.5, 0.1235, 2 / 3, -0.0004):
        for digits in (0, 1, 3):
            assert i18n.number(value, digits) == style.number(value, digits).replace("−", "-")
    for none in (None, math.nan, math.inf):
        assert i18n.number(none) == i18n.percent(none) == i18n.duration(none) == "–"


def test_joined_texts_and_names_between_others(approved, language):
    system, bold = "{system} against {baseline}", "**{system}** against **{baseline}**"
    pairs = [("BM25", "MiniLM"), ("初排", "MiniLM"), ("融合（RRF）", "**重排序**")]
    bolds = [("BM25", "重排序"), ("初排", "MiniLM"), ("融合（RRF）", "重排序"), ("初排", "（二）")]
    names = ["3 条", "甲", "乙"]
    cases = {
        "sentences": [i18n.paragraph(["One.", "Two."]), i18n.paragraph([])],
        "lists": [i18n.enumerated(names[:n]) for n in (1, 2, 3)],
        "all of": [i18n.all_of(names[:n]) for n in (1, 2, 3)],
        "no blank between Han characters": [
            i18n.gettext(system, system=one, baseline=other) for one, other in pairs
        ],
        "bold stays bold: a bracket at its edge needs a blank": [
            i18n.gettext(bold, system=one, baseline=other) for one, other in bolds
        ],
        "an unknown sentence stays English": [
            i18n.gettext("A sentence that no catalogue has: {n}.", n=1)
        ],
    }
    approved(f"i18n/texts.{language}", table((each, "\n".join(cases[each])) for each in cases))


def test_braces_in_what_the_user_gave_are_no_fields():
    assert i18n.error_text(StoreError("No {name!r} here.", name="{x}")) == "No '{x}' here."
    assert Phrase("{name} is missing", name="{x}") == "{x} is missing"
    assert str(DataError("{reason}", reason=Phrase("a {b}"))) == "a {b}"
    without_fields = StoreError('Write {{"env": 1}}.')
    assert i18n.error_text(without_fields) == str(without_fields) == 'Write {"env": 1}.'


def test_a_third_language_is_a_catalogue_with_the_rule_of_its_plurals(tmp_path):
    (tmp_path / "locale").mkdir()
    (tmp_path / "locale" / "pl.po").write_text(POLISH, encoding="utf-8")
    (base := tmp_path / "core" / "base").mkdir(parents=True)
    spec = spec_from_file_location("polish", shutil.copy(i18n.__file__, base))
    polish = module_from_spec(spec)
    spec.loader.exec_module(polish)
    forms = {1: "1 plik", 3: "3 pliki", 5: "5 plików", 12: "12 plików", 0: "0 plików"}
    with polish.speaking("pl"):
        titles = {code: polish.language_name(code) for code in polish.LANGUAGES}
        assert titles == {"en": "English", "pl": "Polski"}
        for n, said in forms.items():
            files = polish.ngettext("{n} file of {name}", "{n} files of {name}", n, name="x")
            assert files == f"{said} z x"
        # A message that the catalogue lacks has the English plural.
        assert [polish.ngettext("{n} run", "{n} runs", n) for n in (1, 3)] == ["1 run", "3 runs"]


def refused(call) -> RankdashError:
    with pytest.raises(DataError) as caught:
        call()
    return caught.value


def errors(folder) -> dict[str, RankdashError]:
    """Return errors with terms of rankdash inside a message."""
    binary = {
        "PDF": b"%PDF-1.7", "PNG": b"\x89PNG\r\n", "pickle": b"\x80\x04\x95",
        "7z": b"7z\xbc\xaf\x27\x1c", "NumPy": b"\x93NUMPY",
    }  # fmt: skip
    good = {"key": "all", "provider": "P", "unit": "search", "amount": 1, "source": "s"}
    changes = [{"amount": -1}, {"unit": "moon"}, {"as_of": "soon"}, {"amount": "x"}, {"colour": ""}]
    prices = [{**good, "as_of": "2026-11-01", **change} for change in changes]
    ranks = "query,document,label,rank\n" + "q,a,1,one\nq,b,0,two\n"
    _, (plugin,) = rerankers.find_plugins([str(folder / "gone.py")], ())
    return {
        "file, line and remedy": FormatError(
            "{n} rows are bad.", remedy="Mend {n}.", file="a.csv", line=7, n=3
        ),
        "a phrase with a name in it": DataError(
            "{name} cannot be read: {reason}.",
            name="a",
            reason=Phrase("{name} is missing", name="qrels.parquet"),
        ),
        **{
            kind: refused(lambda start=start: load([Source("it.bin", start + b"\0" * 60)]))
            for kind, start in binary.items()
        },
        "an empty file": refused(lambda: load([Source("empty.csv", b"")])),
        "ranks that are words": refused(lambda: load([Source("ranks.csv", ranks.encode())])),
        **{
            f"a price with {change}": refused(
                lambda entry=entry: parse_prices(
                    json.dumps({"prices": [entry]}).encode(), "mine.json"
                )
            )
            for change, entry in zip(changes, prices, strict=True)
        },
        "a plugin that is not there": plugin,
    }


def findings() -> dict[str, CheckReport]:
    apart = [
        Source("qrels.txt", b"q0 0 d0 1\nq1 0 d1 0\nq1 0 d0 1\n"),
        Source("run.trec", b"x0 Q0 d0 1 3 bm25\nx0 Q0 d1 2 2 bm25\n"),
    ]
    rows = Source("rows.csv", b"query,document,label\nq,a,1\nq,b,0\n")
    return {
        "a first stage of other queries": examine(apart).report,
        "a table without ids": examine([rows]).report,
    }


def test_errors_and_findings_are_in_the_language_of_the_reader(approved, language, tmp_path):
    said = {
        name: i18n.error_text(error).replace(str(tmp_path), "folder")
        for name, error in errors(tmp_path).items()
    }
    for name, report in findings().items():
        said[name] = "\n".join(map(i18n.finding_text, report.findings))
        # Also after the report was stored.
        stored = CheckReport.from_json(report.to_json())
        assert "\n".join(map(i18n.finding_text, stored.findings)) == said[name]
    approved(f"i18n/errors.{language}", table(said))
    del said["file, line and remedy"]
    wrong = {name for name, text in said.items() if ENGLISH.search(text)}
    assert language == "en" or wrong == set()


def test_the_reason_that_a_job_left_behind_is_said_in_chinese():
    left = RankdashError(
        "The service at {host} cannot be reached: {reason}.",
        remedy="Check that the service is running and that the base URL is correct; resume "
        "continues from here.",
        host="127.0.0.1:9",
        reason="there is no connection ([Errno 111] Connection refused) (after 5 attempts)",
    )
    with i18n.speaking("zh"):
        assert problem_text(left) == (
            "无法连接 127.0.0.1:9 上的服务：无法连接（[Errno 111] Connection refused）"
            "（尝试 5 次之后）。请确认服务正在运行且地址正确；“继续”会从这里接着进行。"
        )
