"""Runs the commands and the code that docs/tasks shows, on the sample that comes with rankdash.

    python -m tests.tasks

writes their outputs into the pages, English and Chinese. Read the difference before you commit it.

A block of `sh` or `python` runs; the block of `text` below it is its output, on standard output and
standard error. If a command writes an HTML file, the block is an excerpt of the file: the first
line is found there, and the lines below it follow in the file. A block below `` `FILE`: `` is the
content of a file. Neural rerankers do not run: their rankings and latencies come with the sample.
"""

import io
import re
import shlex
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from rankdash.app.command import main as command
from rankdash.core.base.shipped import SAMPLES, runs_of
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import import_workspace
from rankdash.kit.commands.timings import write_timings
from rankdash.kit.html.tables import write_run
from tests.documented import DOCS, text_of

TASKS = DOCS / "tasks"
PAGES = sorted(each for each in TASKS.glob("*.md") if not each.name.endswith(".zh.md"))
RENEW = "python -m tests.tasks"
# The runs that come with the samples, by the names that the pages use.
_RUNS = {
    "bge-small": "bge",
    "MiniLM cross-encoder": "cross",
    "First stage + bge-small (RRF)": "fused",
    "e5 多语言": "e5",
    "初排 + e5（RRF）": "fused_zh",
    "MiniLM（英文模型）": "minilm_zh",
}
_BLOCK = re.compile(
    r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S
)
_NEURAL = re.compile(r"--reranker (bi|cross)-encoder")


@dataclass(frozen=True)
class Shown:
    """An output on a page: its position in the text, the page's text, and the actual output."""

    start: int
    end: int
    page: str
    real: str


def outputs(text: str, folder: Path) -> list[Shown]:
    """Return the outputs of a page. folder: an empty one, in which its commands run."""
    prepare(folder)
    with chdir(folder):
        return list(_outputs(text))


def prepare(folder: Path) -> None:
    """Write the samples, as FOLDER and CHINESE, and their runs into a folder."""
    workspace = Workspace(folder / "home")
    for name, language in (("FOLDER", "en"), ("CHINESE", "zh")):
        (folder / name).symlink_to(SAMPLES[language])
        import_workspace.bring_in(workspace, runs_of(SAMPLES[language]), "the sample")
    for row in workspace.runs():
        if name := _RUNS.get(row.name):
            run = workspace.run(row.id)
            write_run(run.ranking, folder / f"{name}.trec", name)
            write_timings(run, folder / f"{name}.json")


def _outputs(text: str) -> Iterator[Shown]:
    names: dict[str, object] = {}
    real, html = "", None
    for block in _BLOCK.finditer(text):
        code, language = block["code"], block["language"]
        if block["file"]:
            Path(block["file"]).write_text(code, encoding="utf-8")
        elif language == "sh":
            real, html = _commands(code), _html(code)
        elif language == "python":
            real, html = _python(code, names), None
        elif language == "text":
            expected = real if html is None else excerpt(html, code)
            yield Shown(block.start("code"), block.end("code"), code, expected)


def _commands(code: str) -> str:
    shown = io.StringIO()
    for line in code.replace("\\\n", " ").splitlines():
        if _NEURAL.search(line):
            continue
        name, *arguments = shlex.split(line, comments=True) or [""]
        assert name == "rankdash", line
        with redirect_stdout(shown), redirect_stderr(shown):
            code = command(arguments)
        assert code in (0, 1), (line, shown.getvalue())
    return _plain(shown.getvalue())


def _python(code: str, names: dict[str, object]) -> str:
    shown = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(shown):
        warnings.simplefilter("ignore", UserWarning)
        exec(compile(code, "page", "exec"), names)
    return _plain(shown.getvalue())


def _html(code: str) -> Path | None:
    written = re.findall(r"--out (\S+\.html)", code)
    return Path(written[-1]) if written else None


def excerpt(html: Path, shown: str) -> str:
    """Return the lines of a report that begin with the first line of `shown`, as many."""
    reader = _Lines()
    reader.feed(text_of(html))
    lines = [each for each in (" ".join(line.split()) for line in reader.lines) if each]
    first, *_ = wanted = shown.splitlines()
    assert first in lines, f"{first!r} is not a line of {html}"
    at = lines.index(first)
    return _plain("\n".join(lines[at : at + len(wanted)]))


class _Lines(HTMLParser):
    """The text of a page: a line for each block, without scripts, styles and drawings."""

    _BLOCKS = frozenset(("p", "li", "tr", "h1", "h2", "h3", "h4", "div", "dt", "dd", "section"))
    _HIDDEN = frozenset(("script", "style", "svg"))

    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in self._HIDDEN
        self.lines += [""] * (tag in self._BLOCKS)

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self._HIDDEN
        self.lines += [""] * (tag in self._BLOCKS)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.lines[-1] += data


def _plain(text: str) -> str:
    """Return the text without blanks at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())


def renew(page: Path) -> None:
    """Write the outputs into a page, and its code and outputs into the Chinese one."""
    text = text_of(page)
    with tempfile.TemporaryDirectory() as folder:
        for each in reversed(outputs(text, Path(folder))):
            text = text[: each.start] + each.real + text[each.end :]
    page.write_text(text, encoding="utf-8")
    chinese = page.with_suffix(".zh.md")
    if chinese.is_file():
        blocks = iter(_BLOCK.findall(text))
        renewed = re.sub(
            r"^```\w+\n.*?^```$",
            lambda _: "```{1}\n{2}```".format(*next(blocks)),
            text_of(chinese),
            flags=re.M | re.S,
        )
        chinese.write_text(renewed, encoding="utf-8")


if __name__ == "__main__":
    for page in PAGES:
        renew(page)
