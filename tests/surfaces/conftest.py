"""A comparison for which each rule of evaluation makes a difference, with names that are markup,
formulas and separators in other formats."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rankdash.features.report.report import html
from rankdash.kit.html.html_page import Draft
from tests.surfaces.case import Case, made, read
from tests.surfaces.reading import Page
from tests.ui.conftest import no_window as no_window

QUERIES, DOCUMENTS = 72, 14
HOSTILE = "=1+1|<b>&_*"
_GRADES = (-1.0, 0.0, 0.0, 0.5, 1.0, 2.0, 3.0, np.nan, np.nan)


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    given = tmp_path_factory.mktemp("given")
    _write(given)
    case = made(given, tmp_path_factory.mktemp("made"), coarse=False)
    # The runs as commands read them: a file that rankdash wrote has no ties.
    runs = (
        replace(
            run, ranking=read(run.name, case.files[run.id], case.folder, run.dataset_id).ranking
        )
        for run in case.runs
    )
    return replace(case, runs=tuple(runs))


@contextmanager
def without_charts() -> Iterator[None]:
    """Omit the charts, which show the same numbers and take most of a report's time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Draft, "chart", lambda _draft, _drawing: "")
        yield


@pytest.fixture(scope="session")
def report(case: Case) -> Page:
    with without_charts():
        return Page(html(case.study).decode())


def _write(folder: Path) -> None:
    """Write the files. Scores are tied, more of them in single precision; labels are negative,
    fractional or missing; some queries have no relevant label or no ranking. The reranking gains a
    little, so that no p is 0 or 1."""
    drawn = np.random.default_rng(11)
    labels = drawn.choice(_GRADES, (QUERIES, DOCUMENTS))
    # A grade that no ranked document has, only the labels.
    labels[:, -1] = 4.0
    labels[4:7] = np.fmin(labels[4:7], 1.0)
    labels[:4] = np.where(np.isnan(labels[:4]), np.nan, 0.0)
    noise = drawn.normal(0, 1.6, (2, QUERIES, DOCUMENTS))
    worth = np.nan_to_num(labels, nan=0.7)
    scores = np.round(noise + np.array([0.0, 0.35])[:, None, None] * worth, 1)
    # Scores that differ in double precision only.
    scores += drawn.integers(0, 2, scores.shape) * 1e-9
    pairs = [(query, doc) for query in range(QUERIES) for doc in range(DOCUMENTS)]
    names = {(query, doc): f"q{query}-{5 * doc % DOCUMENTS}" for query, doc in pairs}
    for name, own, lost in (("initial", scores[0], {7, 8}), (HOSTILE, scores[1], {8, 9})):
        rows = [
            f"q{query} Q0 {names[query, doc]} {rank} {float(own[query, doc])!r} x\n"
            for query in range(QUERIES)
            if query not in lost
            for rank, doc in enumerate(np.argsort(-own[query, :-1], kind="stable"), start=1)
        ]
        (folder / f"{name}.trec").write_text("".join(rows))
    labelled = (
        f"q{query}\t{names[query, doc]}\t{labels[query, doc]:g}\n"
        for query, doc in pairs
        if not np.isnan(labels[query, doc])
    )
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{''.join(labelled)}")
    queries = (
        {"_id": f"q{query}", "text": f"how to {'return ' * (query % 3)}<b>|`&",
         "metadata": {"kind": ("how", "=what|", "<i>why")[query % 3]}}
        for query in range(QUERIES)
    )  # fmt: skip
    documents = ({"_id": names[pair], "text": "some words in a row"} for pair in pairs)
    for name, each in (("queries", queries), ("corpus", documents)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in each))
