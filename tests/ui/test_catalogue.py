"""The catalogues contain every message of the interface, and every translation fits its message.

Messages are collected from the calls that translate or report a text, from the sentences of the
modules below the interface, and from the schemas of the forms.
"""

import ast
import itertools
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from rankdash.core.base import i18n
from rankdash.core.base.i18n import LANGUAGES
from rankdash.core.base.rules import STATISTICS_SETTINGS
from rankdash.core.metrics import CONVENTION_SETTINGS, registry
from rankdash.core.readers.parse.limits import OTHER_REASONS, REASONS
from rankdash.core.rerankers import kinds
from rankdash.core.rerankers.catalogue import known_models
from rankdash.core.rerankers.fusion import FUSION_SETTINGS
from rankdash.core.rerankers.neural.shared import WINDOWS
from rankdash.core.rerankers.remote.chat import JUDGE_SETTINGS as JUDGE_SETTINGS
from rankdash.core.runs.on_ray.cluster import ACTOR_SETTINGS
from rankdash.core.runs.retrieving import RETRIEVAL_SETTINGS
from rankdash.core.statistics.verdict import TITLES
from rankdash.core.study.groups import DERIVED_SEGMENTS, OTHER, UNKNOWN
from rankdash.core.study.labelling import CONFLICTS
from rankdash.core.study.reasons import reasons
from rankdash.core.value import prices
from rankdash.core.value.assumptions import ASSUMPTIONS
from rankdash.core.value.payoff import ARCHETYPES
from rankdash.core.value.prices import UNITS
from rankdash.core.value.targets import LIMITS, STATUSES, shipped
from rankdash.features.overview import caveats
from rankdash.features.report.report import SECTIONS
from tests.roles import PACKAGE, is_command, is_page

ROOT = Path(__file__).parents[2]
CODES = [code for code in LANGUAGES if code != "en"]

# Positions of the arguments that are shown, by the name of the function.
SHOWN = {"_": (0,), "gettext": (0,), "ngettext": (0, 1), "Finding": (2, 4), "Phrase": (0,)}
SHOWN |= {"_p": (1,), "pgettext": (1,)}
SHOWN |= {"_trouble": (1,)}
SHOWN_BY_NAME = ("template", "remedy")
# Below the interface, every text that looks like a sentence counts, because a page may show it.
SENTENCE = re.compile(r"[A-Z{\"].* .*[.:…]\s*", re.DOTALL)
# Fields and variables that a page may translate, because their texts are from the schemas.
DESCRIBED = {"title", "meaning", "formula", "help", "note", "advice", "source", "template", "value"}
DESCRIBED |= {"reference", "remedy", "unset", "purpose", "CONFLICTS[rule]"}
# Fields of assumptions, price lists and billing units.
DESCRIBED |= {"provider", "model", "unit", "unit]"}


@cache
def modules() -> dict[Path, ast.Module]:
    """Return all modules with texts for a page; the command line is English only."""
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    # Messages that stored reports and jobs may contain; pages show their present wording.
    former = ("former_findings", "former_errors")
    on_screen = [path for path in files if path.stem not in former and not is_command(path)]
    return {path: ast.parse(path.read_text()) for path in on_screen}


@cache
def constants() -> dict[str, list[str]]:
    """Return the texts that modules give a name."""
    found: dict[str, list[str]] = {}
    for tree in modules().values():
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                    found.setdefault(name, []).append(text)
    return found


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the literal texts of an expression."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=one, orelse=other):
            yield from texts(one)
            yield from texts(other)
        case ast.BoolOp(values=values):
            for value in values:
                yield from texts(value)
        case ast.BinOp(left=start, op=ast.Add(), right=end):
            yield from map("".join, itertools.product(texts(start), texts(end)))
        case ast.Name(id=name):
            yield from constants().get(name, ())


def shown(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call that appear on a page."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    places = (0,) if name.endswith("Error") else SHOWN.get(name, ())
    named = [word.value for word in call.keywords if word.arg in SHOWN_BY_NAME]
    return [*(call.args[place] for place in places if place < len(call.args)), *named]


@cache
def calls(tree: ast.Module) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def sentences(tree: ast.Module) -> Iterator[str]:
    """Yield the sentences of a module that are neither docstrings nor parts of another text."""
    other: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            other.add(node.value)
        elif node not in other and isinstance(node, (ast.JoinedStr, ast.BinOp)):
            other.update(ast.walk(node))
        elif node not in other:
            yield from (text for text in texts(node) if SENTENCE.fullmatch(text))


def in_context(context: str, text: str) -> tuple[str | None, str]:
    """Return the key of a text in the catalogue: only single words have a context."""
    return None if " " in text else context, text


def from_schemas() -> Iterator[tuple[str, str]]:
    """Yield (context, text) of the titles, units and such of everything that is described."""
    targets, settings = (
        shipped(),
        (
            *(*CONVENTION_SETTINGS, *STATISTICS_SETTINGS, *FUSION_SETTINGS, *ACTOR_SETTINGS),
            *RETRIEVAL_SETTINGS,
        ),
    )
    of_kinds = [spec for kind in kinds() for spec in kind.settings]
    all_settings = (*settings, *of_kinds, *JUDGE_SETTINGS, *ASSUMPTIONS)
    for context, described, names in (
        ("setting", all_settings, "title help"),
        ("choice", all_settings, "unset"),
        ("metric", registry.values(), "title meaning formula note reference"),
        ("reranker", kinds(), "title meaning"),
        ("segment", DERIVED_SEGMENTS, "title meaning note"),
        ("reason", reasons.REASONS, "title meaning"),
        ("unit", ASSUMPTIONS, "unit"),
        ("reranker", ARCHETYPES, "title meaning"),
        ("section", SECTIONS, "title"),
        ("caveat", caveats.kinds(), "title"),
        ("model", known_models(), "purpose"),
        ("provider", prices.shipped(), "provider source"),
        ("model", prices.shipped(), "model"),
        ("source", [targets], "source"),
        ("profile", targets.profiles.values(), "title"),
        ("band", [grade for band in targets.bands for grade in band.grades], "name advice"),
    ):
        texts_of = [getattr(each, name) or "" for name in names.split() for each in described]
        # The address of a source is the same in every language.
        yield from ((context, text) for text in texts_of if not text.startswith("https://"))
    for each in settings:
        yield from (("choice", title) for title in each.words.values())
    for each in (*JUDGE_SETTINGS, *WINDOWS):
        yield from (("choice", title) for key, title in each.words.items() if title != key)
    yield from (("segment", value) for each in DERIVED_SEGMENTS for value in each.values)
    for reason in (*REASONS.values(), OTHER_REASONS):
        yield from (("reason", reason.template(1)), ("reason", reason.template(2)))
    for context, texts_of in (
        ("status", STATUSES.values()),
        ("limit", LIMITS.values()),
        ("segment", (OTHER, UNKNOWN)),
        ("verdict", TITLES.values()),
        ("choice", CONFLICTS.values()),
        ("unit", UNITS.values()),
    ):
        yield from ((context, text) for text in texts_of)


def plurals() -> set[tuple[str, str]]:
    """Return (singular, plural) of every message with a count."""
    return {
        (one, many)
        for tree in modules().values()
        for call in calls(tree)
        if "ngettext" in (getattr(call.func, "attr", ""), getattr(call.func, "id", ""))
        for one, many in zip(texts(call.args[0]), texts(call.args[1]), strict=True)
    }


def messages() -> set[tuple[str | None, str]]:
    """Return (context, text) of every message; the context is None for texts with spaces."""
    reasons_of_runs = (*i18n.REASON_TEMPLATES, *i18n.FORMER_REASON_TEMPLATES)
    found = {(None, text) for text in reasons_of_runs}
    found |= {in_context(*each) for each in from_schemas()}
    for path, tree in modules().items():
        for call in calls(tree):
            for argument in shown(call):
                match call:
                    case ast.Call(
                        func=ast.Name(id="_p"), args=[ast.Constant(value=str(context)), *_]
                    ):
                        found.update(in_context(context, text) for text in texts(argument))
                    case ast.Call(func=ast.Name(id="Phrase")):
                        found.update(in_context("term", text) for text in texts(argument))
                    case _:
                        found.update((None, text) for text in texts(argument))
        if not is_page(path):
            found.update((None, text) for text in sentences(tree))
    return {(context, text) for context, text in found if text not in ("", "–")}


@pytest.fixture(scope="module", params=CODES)
def read(request) -> Catalog:
    with (PACKAGE / "locale" / f"{request.param}.po").open("rb") as stream:
        return read_po(stream, locale=request.param, abort_invalid=True)


@pytest.fixture(scope="module")
def catalogue(read) -> list[tuple[str, str]]:
    """Return (English text, translation): of a plural the first form for one, and each for many."""
    assert not any(message.fuzzy for message in read if message.id)
    found = []
    for message in read:
        if isinstance(message.id, tuple) and all(message.string):
            one, many = message.id
            found += [(one, message.string[0]), *((many, form) for form in message.string)]
        elif message.id and message.string:
            found.append((message.id, message.string))
    return found


def fields(template: str) -> list[tuple[str, str, str | None]]:
    """Return (name, format, conversion) of every field, in order of name."""
    parsed = string.Formatter().parse(template)
    return sorted(
        (name, spec or "", conversion) for _, name, spec, conversion in parsed if name is not None
    )


def samples(template: str) -> dict[str, object]:
    """Return a value that fits for every field, including fields inside formats."""
    found: dict[str, object] = {}
    for name, spec, _ in fields(template):
        found[name] = 3 if spec else "x"
        found.update(dict.fromkeys(samples(spec), 3))
    return found


def test_the_catalogue_has_every_message_and_nothing_that_is_never_said(read):
    known = messages()
    translated = {
        (message.context, text)
        for message in read
        if message.id and all(message.string)
        for text in (message.id if isinstance(message.id, tuple) else (message.id,))
    }
    assert (sorted(known - translated, key=str), sorted(translated - known, key=str)) == ([], [])


def test_what_is_counted_has_every_plural_of_the_language(read):
    counted = [message for message in read if isinstance(message.id, tuple)]
    assert {message.id for message in counted} == plurals()
    assert {len(message.string) for message in counted} == {read.num_plurals}


@pytest.mark.parametrize(
    "part",
    [
        lambda text: set(fields(text)),
        lambda text: sorted(re.findall(r"\*\*|`|:material/\w+:", text)),
        lambda text: (text[0].isspace(), text[-1].isspace()),
    ],
    ids=["fields", "Markdown", "space around it"],
)
def test_a_translation_has_the_same(catalogue, part):
    assert [(text, said) for text, said in catalogue if part(text) != part(said)] == []


def test_fields_can_be_filled_in(catalogue):
    for text, said in catalogue:
        given = samples(text)
        assert text.format(**given)
        assert said.format(**given)


def test_pages_translate_only_what_is_written_there_or_described_in_a_schema():
    """The search above cannot find other messages."""
    strange = [
        f"{path.name}:{argument.lineno}: {ast.unparse(argument)}"
        for path, tree in modules().items()
        if is_page(path)
        for call in calls(tree)
        if getattr(call.func, "id", "") in ("_", "_p", "gettext", "ngettext")
        for argument in shown(call)
        if not list(texts(argument)) and ast.unparse(argument).rpartition(".")[2] not in DESCRIBED
    ]
    assert strange == []


def test_texts_that_may_be_a_single_word_are_translated_in_a_context():
    single = {text for context, text in messages() if context}
    wrong = [
        f"{path.name}:{call.lineno}: {ast.unparse(call)}"
        for path, tree in modules().items()
        for call in calls(tree)
        if getattr(call.func, "id", "") in ("_", "gettext") and call.args
        if single.intersection(texts(call.args[0]))
        or ast.unparse(call.args[0]).rpartition(".")[2] in ("title", "unset", "unit", "provider")
    ]
    assert wrong == []


def test_a_grade_and_a_tag_have_each_a_chinese_word_of_their_own(catalogue):
    """标签 is a tag for a run or data set; a label, the grade of a document, is 标注."""
    wrong = [
        one
        for one, other in catalogue
        if "label" in one.lower() and "tag" not in one.lower() and "标签" in other
    ]
    # A message about a tag of a repository also contains "label".
    assert [one for one in wrong if "branch" not in one] == []
