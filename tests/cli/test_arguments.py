"""Options common to all commands: formats, aliases, help."""

import re
import shlex

import pytest

from rankdash.app import reference
from rankdash.app.command import main
from rankdash.core.base.errors import SpecError
from rankdash.core.base.rules import CONVENTION_SETTINGS, STATISTICS_SETTINGS
from rankdash.core.rerankers import kinds
from rankdash.core.value.assumptions import ASSUMPTIONS
from rankdash.features.report.report import SECTIONS
from rankdash.features.run.command_rerank import add as add_rerank
from rankdash.kit.commands.arguments import FORMATS, Parser, UsageError
from rankdash.kit.commands.examples import EXAMPLES
from rankdash.kit.commands.registry import COMMANDS, put
from tests.sets import ROOT

SIDES = "--qrels a --baseline b --challenger c"
# Commands with formats → their required arguments.
NEEDED = {"check": "x", "evaluate": "", "compare": SIDES, "gate": SIDES, "rerankers": ""}
NEEDED["policy"] = SIDES
NEEDED["verify"] = "x --qrels a --run b"
NEEDED["nightly"] = NEEDED["online"] = "x"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_some_of_the_same_formats_and_refuses_others_with_its_own(command):
    parser = Parser(prog=command)
    put(command, parser)

    def refusal(form: str) -> str:
        with pytest.raises(UsageError) as caught:
            parser.parse_args(["--format", form])
        return str(caught.value)

    said = refusal("html")
    assert ("argument --format" in said) == (command in NEEDED)
    if command in NEEDED:
        forms = [form for form in FORMATS if repr(form) in said]
        assert {"text", "json"} <= set(forms) and ", ".join(map(repr, forms)) in said
        for form in set(FORMATS) - set(forms):
            assert all(repr(each) in refusal(form) for each in forms)
        needed = NEEDED[command].split()
        assert parser.parse_args(["--format", "table", *needed]).format == "text"
        assert parser.parse_args(["--json", *needed]).format == "json"


@pytest.mark.parametrize(
    "spec", (*CONVENTION_SETTINGS, *STATISTICS_SETTINGS), ids=lambda each: each.name
)
def test_every_setting_is_an_option_with_its_values_and_its_refusal(spec):
    parser = Parser(prog="compare")
    put("compare", parser)
    option = f"--{spec.option or spec.name.replace('_', '-')}"
    sides = SIDES.split()
    if spec.default is False:
        assert getattr(parser.parse_args([*sides, option]), spec.name) is True
        return
    for value in spec.choices or ("0.5", "0.75"):
        if spec.choices or type(spec.default) is not int:
            found = parser.parse_args([*sides, option, value])
            assert getattr(found, spec.name) == spec.parse(value)
    with pytest.raises(SpecError, match=spec.name):
        parser.parse_args([*sides, option, "neither"])
    assert getattr(parser.parse_args(sides), spec.name) is None


def test_other_names_of_options_are_understood():
    parser = Parser()
    add_rerank(parser)
    needed = ["--data", "x", "--reranker", "bm25", "-o", "y"]
    for depth, clients in (("--top-k", "--concurrency"), ("--depth", "--clients")):
        found = parser.parse_args([*needed, depth, "7", clients, "1", "2"])
        assert (found.depth, found.clients, found.out) == (7, [1, 2], "y")


@pytest.fixture
def help_of(capsys):
    def shown(*command: str) -> str:
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        return capsys.readouterr().out

    return shown


@pytest.mark.parametrize(
    ("command", "option", "page", "heading"),
    [
        ("rerank", "--plugin", "docs/rerankers.md", "A reranker of your own"),
        ("report", "--assumptions", "docs/cost.md", "--assumptions"),
    ],
)
def test_the_page_explains_the_option(command, option, page, heading, help_of):
    said = re.sub(r"\s+", " ", help_of(command))
    assert re.search(rf"{option} FILE .{{0,250}}\({page}\)", said)
    assert heading in (ROOT / page).read_text()


def test_help_lists_what_the_registries_have(help_of):
    whole, reported, reranked = help_of(), help_of("report"), help_of("rerank")
    assert all(re.search(rf"^ +{name}\b", whole, re.MULTILINE) for name in COMMANDS)
    for name in (*(section.id for section in SECTIONS), *(each.name for each in ASSUMPTIONS)):
        assert re.search(rf"^  {name}\b", reported, re.MULTILINE), name
    _usage, _head, listed = reranked.partition("rerankers and their settings (--set key=value):\n")
    known = [kind for kind in kinds() if kind.name != "precomputed"]
    assert re.findall(r"^  (\S+): ", listed, re.MULTILINE) == [kind.name for kind in known]
    starts = [listed.index(f"  {kind.name}: {kind.meaning}\n") for kind in known]
    for kind, start, end in zip(known, starts, [*starts[1:], None], strict=True):
        block = listed[start:end]
        for spec in kind.settings:
            assert f"\n    {spec.name}=" in block
            assert " ".join(spec.help.split()) in " ".join(block.split())


def test_each_command_has_two_examples_that_its_parser_accepts():
    headings = re.findall(r"^##+ ([a-z -]+)$", reference.text(), re.MULTILINE)
    leaves = {each for each in headings if not any(one.startswith(f"{each} ") for one in headings)}
    # Examples of a removed feature stay.
    there = {each: shown for each, shown in EXAMPLES.items() if each.split()[0] in COMMANDS}
    assert leaves == {each for each, examples in there.items() if len(examples) >= 2}
    for name, examples in there.items():
        command, *_ = name.split()
        parser = Parser(prog=f"rankdash {command}")
        put(command, parser)
        for example in examples:
            _, _, typed = example.partition(f"rankdash {command}")
            parser.parse_args(shlex.split(typed.split(" < ")[0]))


def test_the_committed_reference_is_the_one_that_is_written_and_names_documents(
    help_of, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "40")
    said = reference.text()
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == said, (
        "Write it again: python -m rankdash.app.reference > docs/commands.md"
    )
    pages = re.findall(r"docs/[\w./]+", said)
    assert pages and all((ROOT / page).is_file() for page in pages)
    assert "README" not in said
    # Help works with a broken settings file.
    (tmp_path / "rankdash.toml").write_text("nonsense")
    monkeypatch.chdir(tmp_path)
    assert "--min-gain" in help_of("gate")
