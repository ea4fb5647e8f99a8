"""The docs and the code agree: names in one exist in the other."""

import json
import re
import struct
from pathlib import Path

import pytest

import rankdash as rd
from rankdash.core import rerankers
from rankdash.core.base import rules
from rankdash.core.base.rules import STATISTICS_SETTINGS
from rankdash.core.base.shipped import INTERFACE
from rankdash.core.metrics import CONVENTION_SETTINGS, registry
from rankdash.core.readers import FORMATS, SHAPES, ReadLimits, Source, read
from rankdash.core.readers.loading import examine, load
from rankdash.core.readers.parse.limits import variable
from rankdash.core.rerankers.kinds.endpoint import DIALECTS
from rankdash.core.statistics import bootstrap, planning, verdict
from rankdash.core.study import groups, history, labelling, latency
from rankdash.core.study.reasons import reasons
from rankdash.core.value import prices
from rankdash.core.value.assumptions import ASSUMPTIONS
from rankdash.features.policy import skipping
from rankdash.kit.commands.rankings import MOST_ROWS
from rankdash.kit.commands.registry import COMMANDS
from tests import notebooks
from tests.documented import (
    CHINESE,
    DOCS,
    README,
    ROOT,
    anchors,
    code,
    commands,
    first_names,
    rows,
    section,
    text_of,
)

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
PICTURES = sorted((DOCS / "pictures").glob("*.png"))
FILE = re.compile(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
COMPARING = DOCS / "statistics" / "comparing.md"
CAUSES = DOCS / "statistics" / "causes.md"
DETECTABLE, MORE = "## Minimum detectable change", "## More queries needed"
WHY, DEPTH = "## Reasons for changes", "## Depth, and when not to rerank"
FORMAT_SECTIONS = section(DOCS / "data.md", "## Formats").split("\n### ")[1:]
SHAPE_SECTIONS = section(DOCS / "data.md", "## Shapes of JSON").split("\n### ")[1:]


# --- metrics and rules ----------------------------------------------------------------------------


def test_metrics():
    table = section(DOCS / "metrics.md", "## Metrics")
    assert first_names(table) == [metric.spec for metric in registry.values()]
    for metric, row in zip(registry.values(), rows(table), strict=True):
        assert row[0].endswith(metric.title)
        assert row[2:] == [metric.formula, metric.reference]
    for file, said in ((README, r"More than (\d+) metrics"), (CHINESE, r"超过 (\d+) 个指标")):
        (fewer,) = re.findall(said, text_of(file))
        assert int(fewer) < len(registry)


def test_conventions_with_the_default_first():
    table = section(DOCS / "metrics.md", "## Conventions")
    assert first_names(table) == [each.name for each in CONVENTION_SETTINGS]
    for each, row in zip(CONVENTION_SETTINGS, rows(table), strict=True):
        named = re.findall(r"`([^`]+)`", row[2])
        assert set(named) == set(each.choices)
        assert named[:1] == [str(each.default)][: len(each.choices)]


def test_settings_of_the_statistics_with_their_defaults():
    table = section(DOCS / "statistics.md", "## Settings")
    assert first_names(table) == [each.name for each in STATISTICS_SETTINGS]
    for each, row in zip(STATISTICS_SETTINGS, rows(table), strict=True):
        assert {f"`{choice}`" for choice in each.choices} <= set(
            re.findall(r"`\w+(?:-\w+)*`", row[1])
        )
        default = f"{each.default:,}" if isinstance(each.default, int) else f"{each.default}"
        if each.default is None:
            default = each.unset
        assert row[2].replace("`", "").startswith(default)


def test_verdicts_and_reasons():
    verdicts = [row[0] for row in rows(section(COMPARING, "## Verdict"))]
    assert set(verdicts) == set(verdict.TITLES.values())
    table = rows(section(CAUSES, "## Reasons for changes"))
    assert [row[1] for row in table] == [f"`{each.code}`" for each in reasons.REASONS]
    assert [row[0] for row in table] == [str(at) for at, _ in enumerate(table, 1)]


@pytest.mark.parametrize(
    ("file", "heading", "shown"),
    [
        (COMPARING, "### Bootstrap", f"With {bootstrap.POISSON_FROM:,} queries or more"),
        (COMPARING, "## Intervals", f"With fewer than {rules.FEWEST_QUERIES} queries"),
        (
            COMPARING,
            "## p",
            f"({int(rules.RESAMPLES).bit_length()} queries for {rules.RESAMPLES:,})",
        ),
        (COMPARING, "## Verdict", f"fewer than {rules.FEWEST_QUERIES} paired queries"),
        (COMPARING, DETECTABLE, f"in {planning.POWER:.0%} of".replace("%", " %")),
        (COMPARING, DETECTABLE, f"at {planning.POWER:.2f}"),
        (COMPARING, MORE, f"until {planning.POWER:.0%} of".replace("%", " %")),
        (COMPARING, MORE, f"fewer than {planning.FEWEST_PLANNED} queries"),
        (COMPARING, MORE, f"more than {planning.PRACTICAL:,} queries"),
        (COMPARING, "## Latency", f"at least {latency.P99_NEEDS:,} queries"),
        (COMPARING, "## History", f"fewer than {history.COVERED:.0%} of".replace("%", " %")),
        (CAUSES, WHY, f"within {reasons.NEAR:.0%} of".replace("%", " %")),
        (CAUSES, WHY, f"at most {reasons.CUT:.0%} of the main".replace("%", " %")),
        (CAUSES, WHY, f"the first {reasons.PAGE} if"),
        (CAUSES, WHY, f"at most {reasons.ONE_SIDED:.0%} of the l".replace("%", " %")),
        (CAUSES, "## Kinds of queries", f"fewer than {groups.SMALL} queries"),
        (CAUSES, DEPTH, f"({labelling.TOLERANCE:.0%} of".replace("%", " %")),
        (CAUSES, DEPTH, f"needs {skipping.FEWEST} queries"),
        (CAUSES, DEPTH, f"({skipping.FOLDS} folds)"),
    ],
)
def test_levels_and_thresholds(file, heading, shown):
    assert shown in section(file, heading)


def test_assumptions_with_their_defaults_and_units():
    table = rows(section(DOCS / "cost.md", "## Scenario"))
    assert [row[:2] for row in table] == [
        [f"`{each.name}`", f"{each.default:,.10g}"] for each in ASSUMPTIONS
    ]
    units = section(DOCS / "cost.md", "## Prices")
    assert first_names(units) == list(prices.UNITS)
    assert f"{prices.DOCUMENTS_PER_UNIT} document chunks" in units
    assert f"`chunk_tokens` ({prices.CHUNK_TOKENS})" in units
    assert f"older than {prices.STALE_DAYS} days" in text_of(DOCS / "cost.md")


# --- data -----------------------------------------------------------------------------------------


def test_formats_and_named_shapes():
    assert {each.splitlines()[0] for each in SHAPE_SECTIONS} >= {*SHAPES}
    assert [each.splitlines()[0] for each in FORMAT_SECTIONS] == list(FORMATS)
    named = {
        "TREC runs and qrels": "TREC 的 run、qrels",
        "TREC documents and topics": "文档和 topics",
        "Hugging Face folders": "Hugging Face 文件夹",
    }
    assert [name for name in FORMATS if name not in text_of(README)] == []
    assert [name for name in FORMATS if named.get(name, name) not in text_of(CHINESE)] == []


@pytest.mark.parametrize("shown", SHAPE_SECTIONS, ids=lambda shown: shown.splitlines()[0])
def test_a_shape_of_json_is_a_data_set_with_a_first_stage(shown):
    ((name, text),) = FILE.findall(shown)
    loaded = load([Source(name, text.encode())])
    assert (loaded.dataset.first_stage, loaded.report.errors) == ("given", ())
    assert loaded.report.labels >= 1


@pytest.mark.parametrize("shown", FORMAT_SECTIONS, ids=lambda shown: shown.splitlines()[0])
def test_the_files_of_a_format_are_read_as_what_is_said(shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = dict(FILE.findall(shown))
    sources = [Source(name, text.encode()) for name, text in files.items() if name[-3:] != ".py"]
    for name, text in files.items():
        if name.endswith(".py"):
            exec(compile(text, name, "exec"), {})
    sources += [Source(file.name, file.read_bytes()) for file in sorted(tmp_path.iterdir())]

    (said,) = re.findall(r"^Read as: (`.*?`)\.", shown, re.MULTILINE)
    assert "; ".join(f"`{kind}`" for kind in read(sources).formats.values()) == said
    report = examine(sources).report
    assert report.labels >= 2
    assert {error.code for error in report.errors} <= {"no_first_stage"}


def test_limits():
    limits = ReadLimits()
    numbers = {name: value for name, value in vars(limits).items() if isinstance(value, int)}
    told = {row[2]: row[1] for row in rows(section(DOCS / "data.md", "## Limits"))}
    assert told.keys() == {f"`{variable(name)}`" for name in numbers}
    for name, number in numbers.items():
        assert told[f"`{variable(name)}`"].split(" ")[0] == f"{number:,}"
    assert f"{MOST_ROWS:,}" in told["`RANKDASH_MAX_ROWS`"]


# --- rerankers, pages, commands, variables --------------------------------------------------------


def test_rerankers_and_services():
    text = text_of(DOCS / "rerankers.md")
    kinds = [kind.name for kind in rerankers.kinds() if kind.name != "precomputed"]
    assert first_names(text.split("\n## ")[0]) == kinds
    table = section(DOCS / "rerankers.md", "## Services")
    assert [(row[0], row[2]) for row in rows(table)] == [
        (f"`{each.name}`", f"`{each.variable}`") for each in DIALECTS.values()
    ]


def test_pages():
    main = text_of(INTERFACE)
    pages = re.findall(r'\("(\w+)", _\w*\((?:"page", )?"([^"]+)"\), ":material', main)
    assert sorted(name for name, _ in pages) == sorted(
        file.stem for file in (ROOT / "pages").glob("*.py")
    )
    table = section(DOCS / "quickstart.md", "## Pages")
    assert [row[0] for row in rows(table)] == [title for _, title in pages]


def test_commands():
    assert first_names(section(README, "## Command line")) == list(COMMANDS)
    used = {line[0] for line in commands(README, *PAGES)}
    assert used <= set(COMMANDS)


def test_variables():
    source = "\n".join(text_of(file) for file in (ROOT / "rankdash").rglob("*.py"))
    example = text_of(ROOT / ".env.example")
    known = set(re.findall(r'"(RANKDASH_[A-Z_]+|[A-Z]+_API_KEY|[A-Z]+_BASE_URL)"', source))
    own = {name for name in known if name.startswith("RANKDASH")}
    assert set(re.findall(r"^#(RANKDASH_[A-Z_]+)=", example, re.MULTILINE)) == own
    known |= set(re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE))
    told = set(first_names(section(DOCS / "deploy.md", "## Settings")))
    assert known - told == set()
    assert [name for name in sorted(told) if name not in source + example] == []


def test_what_python_offers():
    text = text_of(DOCS / "python.md")
    functions = {name for name in rd.__all__ if not isinstance(getattr(rd, name), type)}
    assert set(first_names(section(DOCS / "python.md", "## Functions"))) == functions
    assert [name for name in rd.__all__ if f"`{name}" not in text] == []
    parts = re.findall(r"^\| (`.*?) \| ", section(DOCS / "python.md", "## Values"), re.MULTILINE)
    names = {name for part in parts for name in re.findall(r"`(\w+)", part)}
    assert len(names) >= 9
    assert [name for name in sorted(names) if not hasattr(rd.Study, name)] == []
    for block in code(text, "python")[1:]:
        exec(compile(block, "python.md", "exec"), {})


@pytest.mark.parametrize("page", ["cost", "tasks/cost", "glossary", "faq"])
def test_break_even_has_one_definition(page):
    english, chinese = (DOCS / f"{page}.md", DOCS / f"{page}.zh.md")
    assert "the level of one input at which the net value is 0" in text_of(english).lower()
    assert not chinese.exists() or "使净值为 0 的一项输入的取值" in text_of(chinese)


def test_every_path_in_the_docs_is_there():
    """Except paths that a reader of a recipe creates."""
    named = r"`((?:rankdash|tests|pages|assets|docs)/[\w./-]*)`"
    texts = {*DOCS.glob("*.md"), *ROOT.glob("*.md")} - {ROOT / "CHANGELOG.md"}
    found = {path for each in texts for path in re.findall(named, text_of(each))}
    made = re.findall(r"(?:a new file|an empty file|to) `([^`]+)`", text_of(DOCS / "extending.md"))
    found -= {*made}
    assert len(found) > 30 and [each for each in found if not (ROOT / each).exists()] == []


def test_every_package_has_its_place():
    told = " ".join(row[0] for row in rows(section(DOCS / "architecture.md", "## Packages")))
    packages = [each.parent.name for each in (ROOT / "rankdash").glob("*/__init__.py")]
    assert [name for name in packages if f"rankdash/{name}/" not in told] == []


# --- the files themselves -------------------------------------------------------------------------


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_resolve(file):
    text = re.sub(r"```.*?```", "", text_of(file), flags=re.DOTALL)
    broken = []
    for link in LINK.findall(text):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (file.parent / path).resolve() if path else file
        if not target.exists() or (anchor and anchor not in anchors(text_of(target))):
            broken.append(link)
    assert broken == []


def test_the_first_page_of_each_language_links_to_every_page():
    pages = {
        *DOCS.glob("*.md"),
        *DOCS.glob("*.ipynb"),
        *DOCS.glob("tasks/*.md"),
        *DOCS.glob("statistics/*.md"),
    }
    for first, own in (("index.md", False), ("index.zh.md", True)):
        links = {(DOCS / link).resolve() for link in LINK.findall(text_of(DOCS / first))}
        in_language = {each for each in pages if each.name.endswith(".zh.md") == own}
        english = {each for each in pages - in_language if own and not has_chinese(each)}
        assert (in_language | english) - {DOCS / first} <= links


def has_chinese(page: Path) -> bool:
    return page.with_suffix(".zh.md").is_file()


def test_both_readmes_are_alike_and_short():
    english, chinese = text_of(README), text_of(CHINESE)
    command = next(line for line in english.splitlines() if "python -m tests" in line)
    assert command in code(english, "sh")[-1]
    assert f"\nversion: {rd.__version__}\n" in text_of(ROOT / "CITATION.cff")
    assert code(english, "sh", "python") == code(chinese, "sh", "python")
    in_english = [link.replace(".zh.md", ".md") for link in LINK.findall(chinese)]
    assert in_english[1:] == LINK.findall(english)[1:]
    assert first_names(section(README, "## Command line")) == first_names(
        section(CHINESE, "## 命令行")
    )
    assert max(len(english.splitlines()), len(chinese.splitlines())) <= 120


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_pictures_are_small_and_shown(picture):
    content = picture.read_bytes()
    moves = b"acTL" in content
    assert len(content) < (3_000_000 if moves else 200_000)
    assert struct.unpack(">I", content[16:20]) == (1280 if moves else 1440,)
    assert any(f"pictures/{picture.name}" in text_of(page) for page in PAGES)


@pytest.mark.model
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_notebook_runs_and_its_outputs_are_its_own():
    """Except digits, which differ between processors."""

    def shown(outputs):
        texts = [each.get("text") or each["data"]["text/plain"] for each in outputs]
        return [re.sub(r"[-+ ]*[\d.,]+", "0", "".join(text)) for text in texts]

    notebook = json.loads(text_of(notebooks.NOTEBOOK))
    kept = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    made = notebooks.outputs(notebook, DOCS)
    assert [shown(each) for each in made] == [shown(each) for each in kept]
