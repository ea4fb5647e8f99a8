"""Texts and numbers in the reader's language.

The English text is the key. A language is a gettext catalogue in `locale/`, read with Babel; its
header contains the rule of its plurals. A sentence that a catalogue lacks stays English. The
interface registers a function that returns the chosen language (`follow`); a block that writes for
one reader sets it by `speaking`. Babel is imported only when it is needed: commands start without
it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from copy import copy
from datetime import datetime
from decimal import Context, Decimal, localcontext
from functools import cache, lru_cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from string import Formatter

from rankdash.core.base.errors import DataError, Finding, Phrase, RankdashError, RefusedFilesError

_FOLDER = Path(__file__).parents[2] / "locale"
_DASH = "–"
# The digits of the largest float, and many decimals.
_MOST_DIGITS = 400
_MOST_DECIMALS = 12
_TELLING = "123456789"
# With full-width punctuation. Marks of bold text may be in between.
_HAN = re.compile("[\u3001-\u3011\u3400-\u9fff\uff01-\uff5e]")
_HAN_LETTER = re.compile("[\u3400-\u9fff]")
_BLANK_BEFORE_HAN = re.compile(rf"^(\**) (?={_HAN.pattern})")
_BLANK_AFTER_HAN = re.compile(rf"({_HAN.pattern}) (\**)$")


LANGUAGES = ("en", *sorted(file.stem for file in _FOLDER.glob("*.po")))
"""The codes of English and of every catalogue."""
_OF_THE_BLOCK: ContextVar[str | None] = ContextVar("language", default=None)
# The function that returns the reader's language; at most one, set by the interface.
_READERS: list[Callable[[], str | None]] = []


@cache
def language_name(code: str) -> str:
    """Return a language's name in the language itself."""
    from babel import Locale

    return str(Locale.parse(code).get_display_name(code)).capitalize()


def follow(chosen: Callable[[], str | None]) -> None:
    """Use `chosen` to find the reader's language. It may return None or an unknown code."""
    _READERS[:] = [chosen]


@contextmanager
def speaking(code: str) -> Iterator[None]:
    """Use a language inside the block, such as for a download, which is made outside a session."""
    token = _OF_THE_BLOCK.set(code)
    try:
        yield
    finally:
        _OF_THE_BLOCK.reset(token)


def language() -> str:
    """Return the code of the chosen language; "en" if none or an unknown one was chosen."""
    chosen = _OF_THE_BLOCK.get() or next((reader() for reader in _READERS), None)
    return chosen if chosen in LANGUAGES else "en"


@cache
def _catalogue(code: str) -> NullTranslations:
    file = _FOLDER / f"{code}.po"
    if not file.exists():
        return NullTranslations()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    compiled = BytesIO()
    with file.open("rb") as stream:
        write_mo(compiled, read_po(stream, locale=code))
    compiled.seek(0)
    return GNUTranslations(compiled)


def _translate(template: str) -> str:
    # The empty message is the header of a catalogue.
    return template and _catalogue(language()).gettext(template)


def gettext(template: str, **params: object) -> str:
    """Return the sentence in the reader's language with its `{fields}` filled in."""
    text = _translate(template)
    return _fill(text, _filled(params)) if params else text


def pgettext(context: str, template: str, **params: object) -> str:
    """Return a text in the reader's language; a single word is translated in its context.

    context: a short noun, such as "column" or "button". Other languages have different words for
    one English word. Texts with spaces have no context in the catalogues.
    """
    if " " in template:
        return gettext(template, **params)
    text = _catalogue(language()).pgettext(context, template)
    return _fill(text, _filled(params)) if params else text


def _filled(params: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a message with every `Phrase` translated."""
    return {
        name: pgettext("term", value.template, **value.params)
        if isinstance(value, Phrase)
        else value
        for name, value in params.items()
    }


def _fill(text: str, values: Mapping[str, object]) -> str:
    """Return the message with its fields filled in.

    A blank of the message next to a field separates Han from Latin characters; it is dropped if
    both sides are Han.
    """
    if not _HAN.search(text):
        return text.format(**values)
    filled, after_field = "", False
    for literal, name, spec, conversion in Formatter().parse(text):
        if after_field and _is_han(filled[::-1], literal):
            literal = _BLANK_BEFORE_HAN.sub(r"\1", literal)
        filled, after_field = filled + literal, name is not None
        if name is None:
            continue
        field = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
        value = f"{{{field}}}".format(**values)
        if _is_han(value, filled[::-1]):
            filled = _BLANK_AFTER_HAN.sub(r"\1\2", filled)
        filled += value
    return filled


def _is_han(text: str, neighbour: str) -> bool:
    """Return whether a text begins with a Han letter or Chinese punctuation, after any asterisks.

    Markdown does not recognise bold if a bracket follows its asterisks and a letter precedes them,
    so next to asterisks only a letter counts.
    """
    marked = text.startswith("*") or neighbour.startswith("*")
    return bool((_HAN_LETTER if marked else _HAN).match(text.lstrip("*")))


def ngettext(one: str, many: str, n: int, **params: object) -> str:
    """Return the form for n by the rule of the reader's language, `one` or `many` in English; every
    form may use `{n}`, which is written with separators."""
    text = _catalogue(language()).ngettext(one, many, int(n))
    return _fill(text, {"n": number(n, 0), **_filled(params)})


def error_text(error: RankdashError) -> str:
    """Return an error with its place and its remedy, in the reader's language."""
    if isinstance(error, RefusedFilesError):
        each = paragraph([error_text(inner) for inner in error.errors])
        return gettext(
            "Files that cannot be used: {count}. {each}", count=len(error.errors), each=each
        )
    where = where_text(error) if isinstance(error, DataError) else ""
    parts = (error.template, error.remedy)
    # Filled in even without params, as in `str(error)`: "{{" becomes "{".
    params = _filled(error.params)
    text = paragraph([_fill(_translate(part), params) for part in parts if part])
    return gettext("{where}: {what}", where=where, what=text) if where else text


def paragraph(sentences: Sequence[str]) -> str:
    """Return the sentences joined, with a space between them if the language has one."""
    return _between(gettext("{one} {other}")).join(sentences)


def enumerated(parts: Iterable[str]) -> str:
    """Return names or values joined by commas: "a, b, c"."""
    return _between(gettext("{one}, {other}")).join(parts)


def separated(remarks: Iterable[str]) -> str:
    """Return remarks joined by semicolons: "a; b"."""
    return _between(gettext("{one}; {other}")).join(remarks)


def all_of(parts: Sequence[str]) -> str:
    """Return names or values joined in a sentence: "a and b", "a, b, and c"."""
    if len(parts) < 2:
        return "".join(parts)
    one, other = enumerated(parts[:-1]), parts[-1]
    if len(parts) == 2:
        return gettext("{one} and {other}", one=one, other=other)
    return gettext("{one}, and {other}", one=one, other=other)


def _between(pair: str) -> str:
    """Return the text between two fields of a translation."""
    return pair.removeprefix("{one}").removesuffix("{other}")


def where_text(noticed: DataError | Finding) -> str:
    """Return the file and, if known, the line of an error or a finding."""
    if noticed.file and noticed.line:
        return gettext("{file}, line {line}", file=noticed.file, line=noticed.line)
    return noticed.file


def finding_text(finding: Finding) -> str:
    return _fill(_translate(finding.template), _filled(finding.params))


def every_digit() -> AbstractContextManager[Context]:
    """Return a context for Babel, which cannot write numbers of more digits than the precision in
    use."""
    return localcontext(prec=_MOST_DIGITS)


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with this many decimals and the language's separators; a dash for None."""
    if value is None or not math.isfinite(value):
        return _DASH
    # Rounded like the numbers in charts and commands, so that one number is never shown in two
    # ways.
    return _separated(f"{value:.{digits}f}", digits, language())


@cache
def _separates_as_python(code: str) -> bool:
    """Return whether a language writes 1,234.5 and -1. Babel takes twenty times as long to format
    it, and commands, which are English, start without Babel."""
    if code == "en":
        return True
    from babel.numbers import get_decimal_symbol, get_group_symbol, get_minus_sign_symbol

    symbols = get_group_symbol(code), get_decimal_symbol(code), get_minus_sign_symbol(code)
    return symbols == (",", ".", "-")


# A page formats the same few numbers at each rerun.
@lru_cache(maxsize=2**12)
def _separated(rounded: str, digits: int, code: str) -> str:
    if _separates_as_python(code):
        return _zero_unsigned(f"{Decimal(rounded):,f}")
    from babel.numbers import format_decimal

    pattern = "#,##0" + ("." + "0" * digits if digits else "")
    with every_digit():
        return _zero_unsigned(str(format_decimal(Decimal(rounded), format=pattern, locale=code)))


def quantity(value: float, digits: int = 10) -> str:
    """Return a number with at most this many significant digits and twelve decimals, never with an
    exponent."""
    if not math.isfinite(value):
        return _DASH
    return _zero_unsigned(f"{Decimal(f'{round(value, _MOST_DECIMALS):.{digits}g}'):,f}")


def plain(value: float, digits: int = 6) -> str:
    """Return a number as it was entered, such as a label: a whole one with all its digits, another
    with at most this many significant digits, without separators, never with an exponent."""
    if not math.isfinite(value):
        return _DASH
    whole = value == int(value)
    return _zero_unsigned(f"{value:.0f}" if whole else f"{Decimal(f'{value:.{digits}g}'):f}")


def signed(value: float | None, digits: int = 3) -> str:
    """Return a number as `number` does, always with a sign, except for a rounded zero."""
    return _with_sign(number(value, digits))


def signed_percent(value: float | None, digits: int = 0) -> str:
    """Return a share as `percent` does, always with a sign, except for a rounded zero."""
    return _with_sign(percent(value, digits))


def _with_sign(text: str) -> str:
    telling = any(character in _TELLING for character in text)
    return f"+{text}" if telling and not text.startswith("-") else text


def _zero_unsigned(text: str) -> str:
    """Return a written number without a sign if it rounds to zero."""
    return text if any(character in _TELLING for character in text) else text.lstrip("-")


def _decimals(value: float) -> int:
    """Return the number of decimals for a latency or a rate; a small positive value never rounds to
    0."""
    if 0 < value < 0.1:
        return 1 - math.floor(math.log10(value))
    return 0 if value >= 99.5 else 1 if value >= 9.95 else 2


def brief(value: float, beside: float = math.nan) -> str:
    """Return a latency or a rate with three digits, two below 0.1: 0.0078, 0.84, 8.4, 84, 1,240.

    beside: the value that it is compared with, such as its limit; digits are added until both
        differ, so that a value over a limit is never written like the limit.
    """
    if not math.isfinite(value):
        return _DASH
    digits = _decimals(value)
    if not math.isclose(value, beside):
        while digits < _MOST_DECIMALS and round(value, digits) == round(beside, digits):
            digits += 1
    written = f"{value:,.{digits}f}"
    return written.rstrip("0").rstrip(".") if digits else written


def percent(value: float | None, digits: int = 0) -> str:
    """Return a share as a percentage (0.41 → 41%)."""
    if value is None or not math.isfinite(value):
        return _DASH
    from babel.numbers import format_percent

    pattern = "#,##0" + ("." + "0" * digits if digits else "") + "%"
    with every_digit():
        return _zero_unsigned(str(format_percent(value, format=pattern, locale=language())))


def share_percent(value: float | None) -> str:
    """Return a share as `percent` does, with enough digits that a part is never written as 0% or
    100% (0.9988 → 99.9%)."""
    for digits in range(_MOST_DECIMALS):
        written = percent(value, digits)
        if value in (0, 1) or written not in (percent(0, digits), percent(1, digits)):
            break
    return written


def level_percent(level: float) -> str:
    """Return a confidence level with all its digits (0.999 → 99.9%)."""
    return f"{quantity(100 * level, 6)}%"


def duration(seconds: float | None) -> str:
    """Return a rounded time span: 0.4 s, 12 s, 3 min, 2 h 5 min."""
    if seconds is None or not math.isfinite(seconds):
        return _DASH
    if seconds < 10:
        return gettext("{n} s", n=number(seconds, 1))
    if seconds < 90:
        return gettext("{n} s", n=number(seconds, 0))
    minutes = round(seconds / 60)
    if minutes < 90:
        return gettext("{n} min", n=number(minutes, 0))
    return gettext("{h} h {m} min", h=number(minutes // 60, 0), m=minutes % 60)


def moment(iso: str) -> str:
    """Return a stored UTC time such as 2026-11-21T06:14:49+00:00 as a short date and time (UTC)."""
    try:
        parsed = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    from babel.dates import format_datetime

    return str(format_datetime(parsed, "medium", locale=language()))


# Reasons why a query failed or was skipped, in the reader's language.
#
# Runs store a reason as the English sentence that was current then, and so do files from other
# machines. A sentence of the lists below is translated; anything else, such as an answer of another
# program, is shown unchanged.

# The current wording, without a full stop at the end. {why} is itself a reason; other fields are
# copied.
REASON_TEMPLATES = (
    # Templates with a fixed end come first: an earlier one could match the end as a detail.
    "{why} (after {n} attempts)",
    "{why}, and the endpoint returned no token probabilities",
    "no candidates",
    "not in the sample",
    "not scored: the result was conclusive",
    "the query has no text",
    "the document has no text",
    "not graded yet",
    "the last line contains no grade: {why}",
    "the answer gives no reason",
    "the answer names several grades: {grades}",
    "the grade {grade} is not on the scale from 0 to {n}",
    "document {doc} has no text",
    "{n} documents have no text, such as {doc}",
    "The ranking does not contain this query",
    "answers of the reranker: {given}, queries: {n}",
    "scores of the reranker: {given}, documents: {n}",
    "documents scored: {given} of {n}",
    "Documents without a finite score from the model: {given} of {n}",
    "documents with a score: {given} of {n}: {why}",
    "requests that failed: {given} of {n}: {why}",
    "answers that could not be read: {given} of {n}: {why}",
    "stage 1: {why}",
    "stage 2: {why}",
    "not every document was scored",
    "there is no connection ({detail})",
    "time-out: no answer within {seconds} s",
    "the connection was lost ({detail})",
    "the answer cannot be decompressed ({detail})",
    "the answer is not JSON: {detail}",
    "the service answered {status}: {detail}",
    "the service returned {status}",
    "malformed response: {detail} is missing",
    "a result has no index",
    "index {index} is out of range",
    "index {index} is duplicated",
    "score {index} is not a number",
    "the answer is too short",
    "A request failed: {why}",
    "No answer contained an order: {why}",
    "No answer could be read: {why}",
    "empty response",
    "the model answered {detail}",
    "time-out: query time limit reached",
    "the answer is too long",
    "the redirect to {detail} is not followed",
    "partial answer",
    "the answer has no list at {detail}",
    "the list at {detail} has another length",
    "hit {index} has no id at {detail}",
    "the id of hit {index} at {detail} is not a text or a number",
    "hit {index} has an object at {detail}; use a deeper path, such as {why}",
    "the path {detail} does not fit: {why}",
    "no reason given",
    "no connection",
    "no answer in time",
)
# The wording of earlier versions, which stored runs contain.
FORMER_REASON_TEMPLATES = (
    "the last line holds no grade: {why}",
    "not asked yet",
    "{why}, and the endpoint gave no probabilities of tokens",
    "first stage: {why}",
    "second stage: {why}",
    "the connection was cut ({detail})",
    "the answer cannot be unpacked ({detail})",
    "the service said {status}",
    "The answer is malformed: it has no {detail}",
    "index {index} comes twice",
    "the score of index {index} is not a number",
    "No answer held an order: {why}",
    "the model said nothing",
    "the model said {detail}",
    "time-out: the time for this query was over",
    "the answer is far too long",
    "time-out: no answer within {seconds} seconds",
    "the reranker gave {given} answers for 1 query",
    "the reranker gave {given} answers for {n} queries",
    "the reranker gave {given} scores for {n} documents",
    "scored {given} of {n} documents",
    "The model gave no finite score for {given} of {n} documents",
    "{given} of {n} documents have a score: {why}",
    "{given} of {n} requests failed: {why}",
    "{given} of {n} answers could not be read: {why}",
)
_FIELD = re.compile(r"\{(\w+)\}")
# The fields of errors that contain a reason.
_REASON_FIELDS = ("reason", "said")
# In characters: a file can nest reasons without end.
_LONGEST = 1000
_COUNTS = ("n", "given", "index", "status")


def kind_of_failure(kind: str) -> str:
    """Return the name of a kind of failure of `rankdash.features.judge.judge`, in the reader's
    language."""
    titles = {
        "rate_limit": gettext("too many requests (429)"),
        "server_error": gettext("server error"),
        "time_out": gettext("no answer in time"),
        "no_connection": gettext("no connection"),
        "refused": gettext("request refused"),
        "unreadable": gettext("answer in an invalid format"),
        "no_text": gettext("no text"),
        "elsewhere": gettext("no grade in the file"),
        "not_asked": gettext("not graded yet"),
    }
    return titles.get(kind, kind)


def reason_text(reason: str) -> str:
    """Return a stored reason in the reader's language if it is known, else unchanged."""
    if len(reason) > _LONGEST:
        return reason
    if translation := _translated_reason(reason):
        return translation
    # The name of a run may come first, as in a fused run.
    name, colon, rest = reason.partition(": ")
    translation = _translated_reason(rest) if colon else None
    return f"{name}: {translation}" if translation else reason


def problem_text(error: RankdashError) -> str:
    """Return what failed, why, and what to do, in the reader's language, with a known reason
    translated.

    An error stored by a job or another process contains its reason as the English sentence.
    """
    reasons = {name: error.params[name] for name in _REASON_FIELDS if name in error.params}
    translated = copy(error)
    translated.params = {
        **error.params,
        **{name: reason_text(str(each)) for name, each in reasons.items()},
    }
    return error_text(translated)


def refused_text(refused: int, requests: int) -> str:
    """Return how many requests a rate limit refused, and their share, in a few words."""
    return ngettext(
        "{refused} of {n} request refused (429), {share}",
        "{refused} of {n} requests refused (429), {share}",
        requests,
        refused=number(refused, 0),
        share=percent(refused / requests),
    )


def _translated_reason(reason: str) -> str | None:
    for template in (*REASON_TEMPLATES, *FORMER_REASON_TEMPLATES):
        match = _pattern(template).fullmatch(reason.strip())
        if match:
            params = {
                name: reason_text(value) if name == "why" else value
                for name, value in match.groupdict().items()
            }
            text = gettext(template, **params)
            # Some services' reasons begin with a capital letter.
            return text[:1].upper() + text[1:] if reason[:1].isupper() else text
    return None


@cache
def _pattern(template: str) -> re.Pattern[str]:
    pieces = _FIELD.split(template)
    text = "".join(
        f"(?P<{piece}>{r'[0-9]+' if piece in _COUNTS else '.+?'})"
        if place % 2
        else re.escape(piece)
        for place, piece in enumerate(pieces)
    )
    return re.compile(rf"{text}\.?", re.DOTALL | re.IGNORECASE)
