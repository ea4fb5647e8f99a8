"""Uploads: the questions about the files, and the effect of the answers."""

import gzip
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.errors import DataError, LimitError, RefusedFilesError
from rankdash.core.intake.reading import REQUEST, Process, Progress, StoreOutcome, store_loaded
from rankdash.core.readers import FORMATS, SHAPES, MappingNeeded, Source, WordsNeeded
from rankdash.core.readers.loading import load
from rankdash.core.readers.parse.annotators import words_in
from rankdash.features.data import page as data_page
from rankdash.features.data import page_list, page_reading, page_upload
from rankdash.kit.widgets import address
from tests.approved import table
from tests.documented import DOCS, section
from tests.results import shown
from tests.ui.lives import lives, play
from tests.ui.page_text import page_text
from tests.ui.sessions import page, part, press

ROWS = "query,document,label\n" + "".join(
    f"query {q},text {q} {d},{{{(q + d) % 3}}}\n" for q in range(3) for d in range(3)
)


def rows(labels: tuple[str, str, str]) -> bytes:
    return ROWS.format(*labels).encode()


@pytest.fixture
def panel(workspace, monkeypatch):
    """Draw only the uploads and the check report of the stored data set."""
    monkeypatch.setattr(page_upload, "AT_ONCE_SECONDS", float("inf"))

    def drawn():
        blocked, arriving = page_upload.upload_panel()
        if (chosen := address.one("data")) and not arriving:
            data_page.draw(chosen, blocking_said=chosen == blocked)

    return part(drawn)


def drop(app, *files):
    """Upload files: a name and its content, or several such pairs."""
    pairs = [files] if isinstance(files[0], str) else files
    app.file_uploader[0].set_value([(*each, "text/plain") for each in pairs]).run()


def read(app):
    found = next(each.label for each in app.button if each.label.startswith("Read"))
    return press(app, found)


def box(app, label):
    return next(each for each in app.selectbox if each.label == label)


def labels(workspace):
    [row] = workspace.datasets()
    return sorted(workspace.dataset(row.id).qrels["label"].unique())


def test_the_uploader_names_every_format(panel):
    assert all(name in panel.file_uploader[0].help for name in (*FORMATS, *SHAPES))


# Outcomes of a process that reads: a stored data set, a question or an error.
WORDS, OTHER_WORDS = ("good", "bad"), ("relevant", "irrelevant")
OUTCOMES = {
    "here": StoreOutcome("x", was_here=True),
    "columns": MappingNeeded("a.csv", pd.DataFrame({"x": ["1"], "query": ["how to"]}), "document"),
    "columns-b": MappingNeeded("b.csv", pd.DataFrame({"x": ["1"]}), "document"),
    "words": WordsNeeded("a.csv", words_in(np.array(WORDS, dtype=object))),
    "words-b": WordsNeeded("b.csv", words_in(np.array(OTHER_WORDS, dtype=object))),
    "limit": LimitError("The file has {n} rows.", remedy="Load fewer.", file="shop.csv", n=9),
    "refused": DataError("x" * 5000, file="0.csv"),
    "all-refused": RefusedFilesError([DataError("x" * 5000, file=f"{n}.csv") for n in range(3)]),
}


class Held:
    """A replacement for a process that reads: it runs until `end` or `cancel` is called."""

    def __init__(self, workspace, sources, **options):
        self.running, self.cancelled, self.seconds = True, False, 42.0
        self.progress = Progress("reading", 1_250_000, 30.0)
        self.result = lambda: store_loaded(workspace, load(sources, **options))

    def wait(self, _seconds):
        pass

    def cancel(self):
        self.running, self.cancelled = False, True

    def end(self, outcome=None):
        """End the process. outcome: replaces the data set."""
        self.running = False
        if outcome:
            self.result = partial(settled, OUTCOMES[outcome])


def settled(outcome):
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@pytest.mark.parametrize("life", lives("uploads"))
def test_a_life_of_the_uploads(life, approved, panel, workspace, monkeypatch):
    files, asked, reading, how = {}, [], [], {}

    def named(name):
        """Open the page with the field for names. name: of the file that it loads, or "fails"."""

        def fetched(names, *, waiting):
            asked.extend(names)
            waiting()
            if name == "fails":
                raise DataError("The hub at {hub} fails.", remedy="Check it.", hub="*x*")
            return [Source(name, files[name].encode(), "it")]

        monkeypatch.setattr(page_list, "sources_by_name", fetched)
        return page("data", state={"data.by_name": True})

    opened = []

    def columns(name):
        """Draw only the choice of columns."""
        opened[:] = [
            part(page_upload.draw_column_choices, [Source(name, files[name].encode())], str)
        ]
        return opened[0]

    def hold(size, *outcomes):
        """Replace the processes: they run until their end, or have one of the outcomes at once."""
        left = iter(outcomes)

        def process(*given, **options):
            how.update({name: options[name] for name in ("mapping", "words")})
            reading[:] = [Held(*given, **options)]
            if outcome := next(left, None):
                reading[0].end(outcome)
            return reading[0]

        monkeypatch.setattr(page_upload, "is_large", lambda _sources: size == "large")
        monkeypatch.setattr(page_upload, "Reading", process)

    def progress(step, rows):
        reading[0].progress = Progress(step, int(rows))

    def sets():
        found = []
        for row in workspace.datasets():
            data, runs = workspace.dataset(row.id), {each.name for each in workspace.runs(row.id)}
            ranked = data.candidates.documents_of(str(data.queries["query_id"].iloc[0]))[0]
            told = {"name": row.name, "labels": sorted(data.qrels["label"].unique())}
            told |= {"first stage": row.first_stage, "called": row.candidates_name}
            told |= {"ranked": ranked, "runs": runs}
            found.append(shown(told))
        return "\n".join(found)

    acts = {
        "file": files.__setitem__,
        "panel": lambda: panel,
        "drop": lambda *names: drop(panel, *((name, files[name].encode()) for name in names)),
        "columns": columns,
        "named": named,
        "hold": hold,
        "progress": progress,
        "end": lambda *outcome: reading[0].end(*outcome),
        "set": monkeypatch.setenv,
    }
    facts = {"sets": sets, "asked": lambda: asked}
    if "guess" in life:
        facts = {"found": lambda: opened and opened[0].session_state["found"]}
    if "questions" in life:
        facts |= {"read with": lambda: how}
    approved(life, play(life, acts, facts, lambda text: re.sub("x{9,}", counted, text)))


def counted(found):
    return f"x×{len(found[0])}"


@pytest.mark.thorough
def test_a_file_that_unpacks_to_too_much_or_kills_its_reader_is_refused_and_the_page_goes_on(
    panel, workspace, monkeypatch
):
    drop(panel, "labels.json.gz", gzip.compress(b"[" + b"1," * 40_000_000 + b"1]"))
    read(panel)
    [told] = [each.value.replace("\\", "") for each in panel.error]
    assert told.startswith("labels.json.gz: Unpacked, the archive is more than 200 times as large.")
    assert "RANKDASH_MAX_UNPACKED_RATIO" in told
    send = Process.send

    def kill(self, folder):
        if "read" in (folder / REQUEST).read_text():
            self.stop()
        send(self, folder)

    drop(panel, "shop.csv", rows(("2", "1", "0")))
    with monkeypatch.context() as patch:
        patch.setattr(Process, "send", kill)
        read(panel)
    [told] = [each.value for each in panel.error]
    assert (
        "shop" in told
        and "possibly because it was out of memory" in told
        and workspace.datasets() == []
    )
    read(panel)
    assert labels(workspace) == [0, 1, 2]


# The choice of columns before files are read.


@pytest.mark.parametrize(("sizes", "large"), [((30, 20), False), ((30, 30), True)])
def test_of_large_files_together_the_beginning_is_looked_at_once(monkeypatch, sizes, large):
    monkeypatch.setattr(page_upload, "MOST_BYTES", 50)
    looked = []
    monkeypatch.setattr(page_upload, "guessed", lambda _files, most: looked.append(most) or [])
    files = [Source(f"{at}.csv", f"{at}".encode() * size) for at, size in enumerate(sizes)]
    app = part(page_upload.draw_column_choices, files, str).run()
    assert looked == [25] and bool(app.caption) is large


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_how_far_the_reading_is(approved, lang):
    told = {}
    for why, progress in {
        "nothing read yet": Progress(),
        "one row": Progress(rows=1),
        "time is left": Progress("reading", 2, 30.0),
        "less than a second is not said": Progress("joining", 9, 0.9),
        "checking": Progress("checking", 0, 0.0),
        "storing is not cancelled any more": Progress("storing"),
    }.items():
        held = Held(None, ())
        held.progress = progress
        told[why] = page_text(
            part(page_reading.draw_reading_panel, held, ["a.csv", "b*.csv"], lang=lang)
        )
    approved(f"pages/reading.{lang}", table(told))


@pytest.mark.parametrize(
    "form", ["rank_llm", "MTEB predictions", "FlagEmbedding", "Elasticsearch _rank_eval",
             "rerank APIs"],
)  # fmt: skip
def test_files_of_rerankers_are_read_by_drop(panel, workspace, form):
    documented = section(DOCS / "data.md", "## Formats").split(f"\n### {form}\n")[1]
    files = re.findall(
        r"^`([^`\n]+)`:\n\n```\w+\n(.*?)```", documented.split("\n### ")[0], re.M | re.S
    )
    drop(panel, *((name, text.encode()) for name, text in files))
    read(panel)

    assert not panel.error, [each.value for each in panel.error]
    assert max(labels(workspace)) == 2
    [row] = workspace.datasets()
    assert len(workspace.runs(row.id)) == (1 if form == "rerank APIs" else 0)


@pytest.mark.parametrize(("answer", "expected"), [("label", [0, 1, 2]), ("doc_id", [1])])
def test_numbers_that_could_be_grades_or_ids_are_a_question(panel, workspace, answer, expected):
    drop(panel, "x.json", b'{"a": {"retrieved": [3, 2, 1], "relevant": [0, 1, 2]}}')
    read(panel)
    assert "relevant" in panel.warning[0].value and not workspace.datasets()
    read(panel)
    assert panel.warning and not workspace.datasets(), "nothing is chosen before the answer"
    panel.radio[0].set_value(answer)
    read(panel)
    assert not panel.error
    assert labels(workspace) == expected


def test_the_example_of_scikit_learn_is_read_by_drop(panel, workspace):
    drop(panel, "x.csv", b"y_true,y_score\n3,0.9\n2,0.7\n1,0.8\n0,0.1\n0,0.2\n")
    read(panel)
    assert not panel.error and labels(workspace) == [0, 1, 2, 3]
