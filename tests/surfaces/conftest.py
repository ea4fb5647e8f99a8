"""One comparison as files and as a `Study`, for every surface to be held against.

Its rankings are made from those of the data set, without a model: one with its top ordered anew, a
fusion, and one that failed on a query, was not asked another, and took its time. Scores are tied in
the first stage and in all that is made from it.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankdash.cli.timings import write_timings
from rankdash.dataset import Dataset
from rankdash.loading import Loaded, load
from rankdash.ranking.ranking import Ranking, Run
from rankdash.readers import Source, sources_at
from rankdash.reporting.exports.trec import write_run
from rankdash.reporting.report import html
from rankdash.reporting.sections.draft import Draft
from rankdash.rerankers.fusion import Fusion, fuse
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of
from tests.sets import SETS
from tests.surfaces.reading import Page

SPEC = "ndcg@10"
TURNED = 10
_FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")


@dataclass(frozen=True, eq=False)
class Case:
    """files: run id → the file of its ranking. timings: of the run `flaky`, the last."""

    folder: Path
    loaded: Loaded
    runs: tuple[Run, ...]
    files: dict[str, Path]
    timings: Path

    @property
    def qrels(self) -> Path:
        return self.folder / "qrels.tsv"

    @property
    def initial(self) -> Path:
        return self.folder / "initial.trec"

    @property
    def flaky(self) -> Run:
        return self.runs[-1]

    @cached_property
    def study(self) -> Study:
        """The first stage against every run."""
        return self.study_of(self.runs)

    def study_of(self, runs: tuple[Run, ...], **changes: object) -> Study:
        return Study.on(
            SPEC,
            dataset=self.loaded.dataset,
            systems=systems_of(self.loaded.dataset, runs),
            baseline=FIRST_STAGE,
            challengers=tuple(run.id for run in runs),
            check=self.loaded.report,
            **changes,
        )


@pytest.fixture(scope="session", params=SETS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    given, made = SETS[request.param], tmp_path_factory.mktemp(request.param)
    folder, runs_folder = made / "data", made / "runs"
    folder.mkdir()
    runs_folder.mkdir()
    for name in _FILES:
        shutil.copy(given / name, folder)
    (folder / "initial.trec").write_text("".join(_tied(given / "initial.trec")))
    loaded = load(sources_at([str(folder)]))
    first = loaded.dataset.candidates
    assert first.tied.any()
    files = {}
    for file in sorted(given.glob("rerank_*.trec")):
        shutil.copy(file, runs_folder)
        files[file.stem] = runs_folder / file.name
    files["turned"] = runs_folder / "turned.trec"
    files["turned"].write_text("".join(_turned(loaded.dataset)))
    runs = [_read(name, file, folder, loaded.dataset.id) for name, file in files.items()]
    fused = fuse([first, runs[-1].ranking], Fusion())
    assert fused.tied.any()
    runs.append(_written("fused", fused, runs_folder, files, loaded))
    runs.append(
        _flaky(_written("flaky", _without(runs[-2].ranking), runs_folder, files, loaded), first)
    )
    timings = runs_folder / "flaky.json"
    write_timings(runs[-1], timings)
    return Case(folder, loaded, tuple(runs), {run.id: files[run.name] for run in runs}, timings)


@contextmanager
def without_charts() -> Iterator[None]:
    """The charts show the same numbers, and drawing them takes most of a report's time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Draft, "chart", lambda _draft, _drawing: "")
        yield


@pytest.fixture(scope="session")
def report(case: Case) -> Page:
    with without_charts():
        return Page(html(case.study).decode())


def _tied(file: Path) -> Iterator[str]:
    """The lines of a run with its scores so coarse that many are equal."""
    for line in file.read_text().splitlines():
        query, q0, doc, rank, score, tag = line.split()
        yield f"{query} {q0} {doc} {rank} {float(score):.1f} {tag}\n"


def _turned(data: Dataset) -> Iterator[str]:
    """The first ten by their labels, but of every eighth query the other way round; every two of
    them with one score."""
    labels = {(row.query_id, row.doc_id): row.label for row in data.qrels.itertuples()}
    for place, query in enumerate(data.candidates.query_ids):
        documents, _scores = data.candidates.documents_of(query)
        top = sorted(documents[:TURNED], key=lambda doc: -labels.get((query, doc), 0.0))
        ordered = [*(reversed(top) if place % 8 == 7 else top), *documents[TURNED:]]
        for rank, doc in enumerate(ordered, start=1):
            yield f"{query} Q0 {doc} {rank} {-(rank // 2)} turned\n"


def _read(name: str, file: Path, folder: Path, dataset_id: str) -> Run:
    sources = [*sources_at([str(folder / "qrels.tsv")]), Source.from_path(file)]
    ranking = load(sources, first_stage=file.name).dataset.candidates
    return run_from_ranking(name, dataset_id, ranking, file.name)


def _written(
    name: str, ranking: Ranking, folder: Path, files: dict[str, Path], loaded: Loaded
) -> Run:
    files[name] = folder / f"{name}.trec"
    write_run(ranking, files[name], name)
    return run_from_ranking(name, loaded.dataset.id, ranking, files[name].name)


def _without(ranking: Ranking) -> Ranking:
    """The ranking without its first query and its last."""
    kept = ranking.query_ids[1:-1]
    return Ranking.from_lists((query, *ranking.documents_of(query)) for query in kept)


def _flaky(run: Run, first: Ranking) -> Run:
    """The run with latencies of most queries, failed on the first and not asked the last."""
    lost = pd.DataFrame(
        {
            "query_id": [first.query_ids[0], first.query_ids[-1]],
            "state": ["failed", "skipped"],
            "reason": ["the service was *busy*", ""],
        }
    ).assign(**dict.fromkeys(("latency_ms", "index_ms", "pairs", "tokens", "truncated"), np.nan))
    place = np.arange(len(run.queries))
    # Of every ninth query nobody knows how long it took.
    latency = np.where(place % 9 == 4, np.nan, 11 + 97 * (place * 0.6180339887 % 1))
    timed = run.queries.assign(latency_ms=latency)
    return replace(run, queries=pd.concat([timed, lost], ignore_index=True))
