"""`docs/commands.md` is what the parsers say."""

from pathlib import Path

from rankdash.cli import reference
from rankdash.cli.main import COMMANDS

FILE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_committed_reference_is_the_one_that_is_written(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert FILE.read_text(encoding="utf-8") == reference.text(), (
        "Write it again: python -m rankdash.cli.reference > docs/commands.md"
    )


def test_it_names_every_command_with_its_options():
    text = reference.text()
    for command in COMMANDS:
        assert f"\n## {command}\n" in text
    assert "- `--min-gain [SPEC=]N …`: the mean gain over the baseline" in text
    assert "### workspace import" in text
    assert "%(default)s" not in text
    # Keys of the settings file, with the commands that they are for.
    assert "| `max_hurt` | gate |" in text
