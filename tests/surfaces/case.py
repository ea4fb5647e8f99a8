"""One comparison as files and as a `Study`, which every surface is compared with.

Its rankings are derived from those in a data set, without a model: one with a reordered top, a
fusion, and one that failed on a query, skipped another, and has latencies. Scores are tied in the
first stage and in all rankings derived from it.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.readers import Source, sources_at
from rankdash.core.readers.loading import Loaded, load
from rankdash.core.rerankers.fusion import Fusion, fuse
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of
from rankdash.kit.commands.timings import write_timings
from rankdash.kit.html.tables import write_run

SPEC = "ndcg@10"
TURNED = 10


@dataclass(frozen=True, eq=False)
class Case:
    """One comparison. files: run id → file of its ranking. timings: of the last run, `flaky`."""

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

    @property
    def answered(self) -> tuple[Run, ...]:
        """The runs that a file contains completely: without timings, a failed query is a query that
        the ranking lacks."""
        return self.runs[:-1]

    def file(self, name: str) -> Path:
        """Return the file of a run by its name."""
        return next(self.files[run.id] for run in self.runs if run.name == name)

    @cached_property
    def study(self) -> Study:
        """The study of the first stage and every run."""
        return self.study_of(self.runs)

    def study_of(self, runs: tuple[Run, ...], spec: str = SPEC, **changes: object) -> Study:
        return Study.on(
            spec,
            dataset=self.loaded.dataset,
            systems=systems_of(self.loaded.dataset, runs),
            baseline=FIRST_STAGE,
            challengers=tuple(run.id for run in runs),
            check=self.loaded.report,
            **changes,
        )


def made(given: Path, target: Path, *, coarse: bool = True) -> Case:
    """Make a case. given: a folder with corpus.jsonl, queries.jsonl, qrels.tsv, initial.trec and
    rankings. coarse: scores of the first stage are rounded, so that many are equal."""
    folder, runs_folder = target / "data", target / "runs"
    runs_folder.mkdir(parents=True)
    folder.mkdir()
    for name in ("queries.jsonl", "qrels.tsv"):
        shutil.copy(given / name, folder)
    (folder / "corpus.jsonl").write_text("".join(_shortened(given / "corpus.jsonl")))
    (folder / "initial.trec").write_text("".join(_tied(given / "initial.trec", 1 if coarse else 9)))
    loaded = load(sources_at([str(folder)]))
    first = loaded.dataset.candidates
    assert first.tied.any()
    files = {}
    for file in sorted(given.glob("*.trec")):
        if file.name != "initial.trec":
            files[file.stem] = Path(shutil.copy(file, runs_folder))
    files["turned"] = runs_folder / "turned.trec"
    files["turned"].write_text("".join(_turned(loaded.dataset)))
    runs = [read(name, file, folder, loaded.dataset.id) for name, file in files.items()]
    fused = fuse([first, runs[-1].ranking], Fusion())
    assert fused.tied.any()
    turned = runs[-1].ranking
    lacking = Ranking.from_lists(
        (query, *turned.documents_of(query)) for query in turned.query_ids[1:-1]
    )
    for name, ranking in (("fused", fused), ("flaky", lacking)):
        files[name] = runs_folder / f"{name}.trec"
        write_run(ranking, files[name], name)
        runs.append(run_from_ranking(name, loaded.dataset.id, ranking, files[name].name))
    runs[-1] = _flaky(runs[-1], first)
    timings = runs_folder / "flaky.json"
    write_timings(runs[-1], timings)
    return Case(folder, loaded, tuple(runs), {run.id: files[run.name] for run in runs}, timings)


def _shortened(file: Path) -> Iterator[str]:
    """Yield documents with their first words only, because counting tokens takes long."""
    for line in file.read_text().splitlines():
        row = json.loads(line)
        yield f"{json.dumps(row | {'text': row['text'][:60]})}\n"


def _tied(file: Path, decimals: int) -> Iterator[str]:
    """Yield the lines of a run with rounded scores."""
    for line in file.read_text().splitlines():
        query, q0, doc, rank, score, tag = line.split()
        yield f"{query} {q0} {doc} {rank} {float(score):.{decimals}f} {tag}\n"


def _turned(data: Dataset) -> Iterator[str]:
    """Yield the top ten ordered by label, reversed for every eighth query; every two of them have
    the same score."""
    labels = {(row.query_id, row.doc_id): row.label for row in data.qrels.itertuples()}
    for place, query in enumerate(data.candidates.query_ids):
        documents, _scores = data.candidates.documents_of(query)
        top = sorted(documents[:TURNED], key=lambda doc: -labels.get((query, doc), 0.0))
        ordered = [*(reversed(top) if place % 8 == 7 else top), *documents[TURNED:]]
        for rank, doc in enumerate(ordered, start=1):
            yield f"{query} Q0 {doc} {rank} {-(rank // 2)} turned\n"


def read(name: str, file: Path, folder: Path, dataset_id: str) -> Run:
    sources = [*sources_at([str(folder / "qrels.tsv")]), Source.from_path(file)]
    ranking = load(sources, first_stage=file.name).dataset.candidates
    return run_from_ranking(name, dataset_id, ranking, file.name)


def _flaky(run: Run, first: Ranking) -> Run:
    """Return the run with latencies of most queries, failed on the first, the last one skipped."""
    lost = pd.DataFrame(
        {
            "query_id": [first.query_ids[0], first.query_ids[-1]],
            "state": ["failed", "skipped"],
            "reason": ["the service was *busy*", ""],
        }
    ).assign(**dict.fromkeys(("latency_ms", "index_ms", "pairs", "tokens", "truncated"), np.nan))
    place = np.arange(len(run.queries))
    # Every ninth query has no latency.
    latency = np.where(place % 9 == 4, np.nan, 11 + 97 * (place * 0.6180339887 % 1))
    timed = run.queries.assign(latency_ms=latency)
    return replace(run, queries=pd.concat([timed, lost], ignore_index=True))
