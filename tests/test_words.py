"""Texts in plain English: the number of idioms may only fall.

Each expression is counted per kind of text, and CEILINGS limits each count. Files that are added
after the commit FROZEN contain none of the expressions in IDIOMS. `python -m tests.test_words`
prints the present counts in the format of CEILINGS, and with a name such as `hold`, every line that
contains this expression.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from babel.messages.pofile import read_po

from tests.roles import is_command
from tests.sets import ROOT

# A commit of the main branch.
FROZEN = "6388129c"
IDIOMS = {
    # "There is no …" is plain.
    "is-no": r"(?<!there\s)\b(is|are|was|were) no (?!longer|more)\w+",
    "nobody": r"\b(whoever|nobody|somebody)\b",
    "says-nothing": r"\bsays? nothing\b",
    "tell": r"\b(tells?|told)\b",
    "stand": r"\bstands?\b",
    "hold": r"\bholds?\b",
    "give": r"(^|[.;] )give\b",
    "from-on": r"\bfrom [^.,;:()]{1,25} on\b",
    "labels-more": (
        r"\b(labels?|queries|query|pairs?|documents?) more\b(?! (queries|labels|documents)\b)"
    ),
    "that-of": r"\b(that|those) of\b",
    "of-its-own": r"\bof (its|their|your|one's) own\b",
    "so-many": r"\bso (many|few|far|long|large|high|deep)\b",
    "idiom": r"\bbe had\b|hangs? on|goes? without|milliard|guilty|under way|put right|\banew\b",
    "people": r"\bpeople\b",
    "settle": r"\bsettle[sd]?\b",
    "pays": r"\bpays?\b(?! (off|for)\b)",
    "cut": r"\bcut\b",
    "inverted": r"^(answered|tested|read|known|possible) (is|are)\b",
}
# Words with plain uses too: they are counted in docstrings and comments only.
FREQUENT = {
    "where": r"\bwhere\b",
    "what-is": r"\b(what (is|are|the|a)|(those|one) (that|which))\b",
    "say": r"\b(says?|said)\b",
    "ask": r"\bask(s|ed|ing)?\b",
    "keep": r"\b(keeps?|kept)\b",
    "beside": r"\bbeside\b",
    "alone": r"\balone\b",
    "left-out": r"\bleft out\b",
}
CHINESE = {
    "pair": "查询与文档对",
    "log": "对数(?!刻度|值|据)",
    "labels": "个标注(?!的)",
    "dashboard": "仪表板",
    "answered": "答完",
    "guess": "猜测",
    "no-space": r"[\u3400-\u9fff]\{name",
}
ENGLISH = ("messages", "commands", "docs", "code", "commits")
COLUMNS = (*ENGLISH, "chinese")
# First words of docstrings that are neither a verb nor the name of a thing.
NO_NAME = re.compile(r"\s*(What|Whether|Where|How|Those|That|Its|None|As)\b")
CEILINGS = """
row                 messages  commands      docs      code   commits   chinese
is-no                      0         0         2         2         0         -
nobody                     0         0         4         1         1         -
says-nothing               0         0         0         0         0         -
tell                       6         4        10        16         0         -
stand                      0         0         8         0         0         -
hold                       1         0         9         0         1         -
give                       0         0         0         0         2         -
from-on                    0         0         4         4         0         -
labels-more                0         0         0         0         0         -
that-of                    0         0         2         0         0         -
of-its-own                 0         0         5         0         0         -
so-many                    0         0         0         4         0         -
idiom                      0         0         0         0         2         -
people                     0         0         0         3         0         -
settle                     0         0         1         2         0         -
pays                       0         0         1         1         1         -
cut                        1         0         2         4         0         -
inverted                   0         0         0         0         0         -
where                      -         -         -         8         -         -
what-is                    -         -         -        23         -         -
say                        -         -         -         1         -         -
ask                        -         -         -         8         -         -
keep                       -         -         -         6         -         -
beside                     -         -         -         7         -         -
alone                      -         -         -        10         -         -
left-out                   -         -         -         1         -         -
pair                       -         -         -         -         -         0
log                        -         -         -         -         -         0
labels                     -         -         -         -         -         0
dashboard                  -         -         -         -         -         0
answered                   -         -         -         -         -         0
guess                      -         -         -         -         -         0
no-space                   -         -         -         -         -         0
any-idiom                  8         -         -         -         -         -
first-word                 -         -         -         1         -         -
sentence-over-30           -         -         0         -         -         -
chinese-over-80            -         -         0         -         -         -
item-over-60               -         -         0         -         -         -
per-1000-words             -         -         -        1.0         -         -
"""

_STRING = r"""(?i:[rbf]{0,2})(?!\"{3})("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
_PARTS = re.compile(
    r"(?P<comment>#[^\n]*(?:\n *#[^\n]*)*)"
    r'|(?P<docstring>(?m:^) *r?"{3}.*?"{3}(?= *(?:\n|\Z|#)))'
    r'|(?i:[rbf]{0,2})"{3}(?:\\.|.)*?"{3}'
    rf"|(?P<string>{_STRING}(?:\s*{_STRING})*)",
    re.DOTALL,
)
_FIELD = re.compile(r"\{[^{}]*\}")
_CODE = re.compile(r"^(```|~~~).*?^\1|<!--.*?-->|(`+)[^`]+?\2|(?<=\]\()[^)\s]+", re.M | re.S)
_HAN = re.compile(r"[\u3400-\u9fff]")
_CHINESE_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_ITEM = re.compile(r"\s*([-*+]|\d+\.)\s")
_SENTENCE_END = re.compile(r"(?<=[.!?])[*_)]*\s+|(?<=[。！？])")


class Text(NamedTuple):
    """A text with its place. In it, code is replaced by spaces and an x."""

    kind: str
    form: str
    place: str
    line: int
    text: str


class Match(NamedTuple):
    """A part of a text, with its line."""

    place: str
    line: int
    shown: str


def without(code: re.Pattern, text: str) -> str:
    """Replace each match by spaces and an x. Line ends stay."""
    return code.sub(lambda match: re.sub(r"[^\n]", " ", match[0])[:-1] + "x", text)


def python_texts(place: str, source: str, command: bool) -> Iterator[Text]:
    """Yield docstrings, comments and, of a module of the command line, strings with spaces."""
    for match in _PARTS.finditer(source):
        kind, form, text = "code", match.lastgroup or "", match[0]
        if form == "comment":
            text = re.sub(r"(?m)^[ \t]*#", " ", text)
        elif form == "docstring":
            text = text.replace('"""', "   ")
        elif command and " " in text.strip():
            # The quotation marks between the lines of a string are not part of it.
            text = without(_FIELD, re.sub(r'"(\s*)[rf]{0,2}"', r" \1", text)).strip('rf"')
            kind = "commands"
        else:
            continue
        line = source.count("\n", 0, match.start()) + 1
        yield Text(kind, form, place, line, without(_CODE, text))


def document_texts(place: str, source: str) -> Iterator[Text]:
    """Yield the paragraphs, headings, list items and table cells of a Markdown file."""
    start, lines = 1, []
    for number, line in enumerate([*without(_CODE, source).split("\n"), ""], 1):
        is_row = line.lstrip().startswith("|")
        if lines and (is_row or not line.strip() or line.startswith("#") or _ITEM.match(line)):
            form = "item" if _ITEM.match(lines[0]) else "paragraph"
            yield Text("docs", form, place, start, "\n".join(lines))
            lines = []
        if is_row:
            yield from (Text("docs", "cell", place, number, each) for each in line.split("|"))
        elif line.strip():
            start = start if lines else number
            lines.append(line)


def catalogue_texts() -> Iterator[Text]:
    """Yield the English and Chinese messages. One-word messages have the form "bare" until they
    have a context."""
    place = "rankdash/locale/zh.po"
    with (ROOT / place).open("rb") as stream:
        for message in read_po(stream):
            english, chinese = (
                " / ".join(each) if isinstance(each, tuple) else str(each)
                for each in (message.id, message.string)
            )
            if english:
                # "{name}:" has no word, and needs no context.
                one_word = len(english.split()) == 1 and re.search(r"\w", _FIELD.sub("", english))
                form = "bare" if one_word and not message.context else "message"
                line = message.lineno or 0
                yield Text("messages", form, place, line, without(_FIELD, english))
                yield Text("chinese", form, place, line, chinese)


def git(*arguments: str) -> list[str]:
    """Return the lines that a git command prints: none without git, a repository or the commit."""
    if shutil.which("git") is None:
        return []
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return [] if done.returncode else done.stdout.splitlines()


@cache
def texts() -> list[Text]:
    found = [*catalogue_texts()]
    for pattern in ("*.py", "pages/*.py", "rankdash/**/*.py", "tests/**/*.py"):
        for file in sorted(ROOT.glob(pattern)):
            command = pattern.startswith("rankdash") and is_command(file)
            place = file.relative_to(ROOT).as_posix()
            found += python_texts(place, file.read_text("utf-8"), command)
    for file in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        found += document_texts(file.relative_to(ROOT).as_posix(), file.read_text("utf-8"))
    for line in git("log", "--format=%h %s", "v0.2.0..HEAD"):
        commit, _, subject = line.partition(" ")
        found.append(Text("commits", "subject", commit, 1, subject))
    return found


def matches(expression: str, text: Text, flags: int = re.IGNORECASE) -> Iterator[Match]:
    """Yield the matches of an expression, which also contain line ends as spaces."""
    for match in re.finditer(expression.replace(" ", r"\s+"), text.text, flags):
        line = text.line + text.text.count("\n", 0, match.start())
        shown = text.text[max(0, match.start() - 40) : match.end() + 40]
        yield Match(text.place, line, " ".join(shown.split()))


def words(text: str) -> int:
    return len(re.findall(r"\S*\w\S*", text))


def long_sentences(text: Text) -> Iterator[tuple[str, Match]]:
    """Yield row of CEILINGS and place of long sentences. In Chinese, each character counts."""
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text.text)), len(text.text)]:
        sentence = text.text[start:end]
        line = text.line + text.text.count("\n", 0, start)
        match = Match(text.place, line, " ".join(sentence.split()))
        if not _HAN.search(sentence):
            if words(sentence) > 30:
                yield "sentence-over-30", match
        elif len(_CHINESE_WORD.findall(sentence)) > 80:
            yield "chinese-over-80", match
        start = end


def counts(text: Text) -> Iterator[tuple[str, Match]]:
    """Yield row of CEILINGS and place for everything that is counted in a text."""
    for row, expression in expressions(text.kind).items():
        yield from ((row, match) for match in matches(expression, text))
    if text.kind == "docs":
        yield from long_sentences(text)
    whole = Match(text.place, text.line, " ".join(text.text.split()))
    if text.form == "docstring" and NO_NAME.match(text.text):
        yield "first-word", whole
    if text.form == "item" and words(text.text) > 60:
        yield "item-over-60", whole
    if text.kind == "messages" and text.form == "bare":
        yield "no-context", whole


def expressions(kind: str) -> dict[str, str]:
    if kind == "chinese":
        return CHINESE
    return IDIOMS | FREQUENT if kind == "code" else IDIOMS


@cache
def counted() -> dict[tuple[str, str], list[Match]]:
    """Return row and column of CEILINGS → what is counted there."""
    found: dict[tuple[str, str], list[Match]] = {
        (row, kind): []
        for row in (*IDIOMS, *FREQUENT, *CHINESE)
        for kind in COLUMNS
        if row in expressions(kind)
    }
    for text in texts():
        matched = [*counts(text)]
        for row, match in matched:
            found.setdefault((row, text.kind), []).append(match)
        idioms = [match for row, match in matched if row in IDIOMS]
        if text.kind == "messages" and idioms:
            found.setdefault(("any-idiom", "messages"), []).append(idioms[0])
    return found


def numbers() -> dict[tuple[str, str], float]:
    """Return row and column of CEILINGS → present number."""
    found: dict[tuple[str, str], float] = {key: len(each) for key, each in counted().items()}
    total = sum(words(text.text) for text in texts() if text.kind == "code")
    flagged = sum(found[row, "code"] for row in IDIOMS | FREQUENT)
    return found | {("per-1000-words", "code"): round(1000 * flagged / total, 1)}


def table() -> str:
    """Return the present numbers in the format of CEILINGS."""
    found = numbers()
    lines = [["row", *COLUMNS]]
    for row in dict.fromkeys(row for row, _ in found):
        lines.append([row, *(str(found.get((row, kind), "-")) for kind in COLUMNS)])
    return "\n".join(f"{row:<18}" + "".join(f"{n:>10}" for n in cells) for row, *cells in lines)


def ceilings() -> dict[tuple[str, str], float]:
    (_, *columns), *rows = (line.split() for line in CEILINGS.strip().splitlines())
    cells = (
        (row, kind, cell) for row, *cells in rows for kind, cell in zip(columns, cells, strict=True)
    )
    return {(row, kind): float(cell) for row, kind, cell in cells if cell != "-"}


def changed_lines() -> set[tuple[str, int]]:
    """Return file and line of what changed since the last change of CEILINGS."""
    commit = git("log", "-1", "--format=%h", "--", "tests/test_words.py")
    found, place = set(), ""
    for line in git("diff", "-U0", "--no-prefix", *commit):
        if line.startswith("+++ "):
            place = line[4:]
        elif hunk := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line):
            first, length = int(hunk[1]), int(hunk[2] or 1)
            found |= {(place, number) for number in range(first, first + length)}
    return found


def listed(matches: Iterable[Match]) -> str:
    return "\n".join(f"  {each.place}:{each.line}: {each.shown}" for each in matches)


def test_no_count_is_above_its_ceiling():
    # Commits on the main branch cannot change any more.
    fixed = {key: n for key, n in numbers().items() if key[1] != "commits"}
    above = {key for key, n in fixed.items() if n > ceilings().get(key, 0)}
    changed = changed_lines() if above else set()
    report = ""
    for row, kind in sorted(above):
        every = counted().get((row, kind), [])
        new = [each for each in every if (each.place, each.line) in changed]
        report += f"\n{row} in {kind}: {numbers()[row, kind]}, ceiling {ceilings()[row, kind]:g}\n"
        report += listed(new or every)
    assert not report, report


def test_new_files_contain_no_idiom():
    new = {*git("diff", "--diff-filter=A", "-M", "--name-only", FROZEN)}
    new |= {*git("ls-files", "--others", "--exclude-standard")}
    wrong = [
        match
        for (row, _), matches in counted().items()
        if row not in FREQUENT
        for match in matches
        if match.place in new
    ]
    assert not wrong, listed(wrong)


def test_subjects_of_new_commits_contain_no_idiom():
    subjects = git("log", "--format=%s", "main..HEAD")
    new = [Text("commits", "subject", "commit", 1, subject) for subject in subjects]
    wrong = [match for text in new for _, match in counts(text)]
    assert not wrong, listed(wrong)


if __name__ == "__main__":
    if rows := sys.argv[1:]:
        print(listed(each for key, found in counted().items() if key[0] in rows for each in found))
    else:
        print(table())
