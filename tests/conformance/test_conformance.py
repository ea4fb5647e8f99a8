"""Files and values of other tools. Each tool runs in its own virtual environment.

They need packages that rankdash does not need; `docs/conformance.md` describes the environments.
"""

import re

import pytest

from tests.conformance.drive import TOOLS
from tests.conformance.exchange import FAILS, exchange, python_of
from tests.documented import DOCS, rows, text_of

PAGE = DOCS / "conformance.md"


@pytest.mark.thorough
@pytest.mark.parametrize("tool", TOOLS)
def test_files_of_a_tool_are_read_here_and_ours_there_with_equal_values(tool, tmp_path):
    python = python_of(tool)
    if python is None:
        pytest.skip(f"the tool {tool} is not installed")
    outcome = exchange(tool, python, tmp_path)
    assert bool(outcome.problems) == (tool in FAILS), outcome.problems
    assert outcome.read or outcome.written


def test_the_page_lists_every_tool_with_its_version_and_result():
    table = rows(text_of(PAGE))
    assert [row[0] for row in table] == list(TOOLS)
    assert all(re.match(r"\d", row[1]) for row in table)
    assert {row[0]: row[-1] for row in table} == {
        tool: f"fails: {FAILS[tool]}" if tool in FAILS else "pass" for tool in TOOLS
    }
