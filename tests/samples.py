"""Makes the runs that come with a sample, as its NOTICE.md describes them, and writes them with the
sample into its workspace file: `python -m tests.samples`.

Rankings come out the same each time; latencies are those of the machine that it runs on, which
should have nothing else to do.
"""

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from rankdash import __version__, sharing
from rankdash.dataset import Dataset
from rankdash.loading import load
from rankdash.ranking.ranking import SHIPPED_WITH, Run
from rankdash.readers import sources_from_path
from rankdash.rerankers import create, get
from rankdash.rerankers.fusion import Fusion
from rankdash.runs import combining
from rankdash.runs.combining import FIRST_STAGE, CombinedRun
from rankdash.runs.plan import Timing
from rankdash.runs.runner import rerank
from rankdash.shipped import SAMPLES, runs_of
from rankdash.store import Workspace

TIMING = Timing(repeats=3)


@dataclass(frozen=True)
class Rerank:
    """A run of a reranker with some settings; the others are the defaults."""

    name: str
    reranker: str
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fuse:
    """A fusion of earlier runs of the list; `FIRST_STAGE` is the data set's own ranking."""

    name: str
    parts: tuple[str, ...]
    how: Fusion = field(default_factory=Fusion)


@dataclass(frozen=True)
class Shipped:
    """What a sample is called, and its runs in the order in which they are listed."""

    name: str
    runs: tuple[Rerank | Fuse, ...]


SHIPPED = {
    "helpcentre": Shipped(
        "Help centre",
        (
            Rerank("bge-small", "bi-encoder", {"model": "packaged/bge-small-en-v1.5"}),
            Rerank("MiniLM cross-encoder", "cross-encoder"),
            Fuse("First stage + bge-small (RRF)", (FIRST_STAGE, "bge-small")),
            Rerank("BM25 without stemming", "bm25", {"language": "none"}),
        ),
    ),
    "helpcentre_zh": Shipped(
        "帮助中心",
        (
            Rerank("e5 多语言", "bi-encoder", {"model": "packaged/multilingual-e5-small"}),
            Fuse("初排 + e5（RRF）", (FIRST_STAGE, "e5 多语言")),
            Rerank("MiniLM（英文模型）", "bi-encoder", {"model": "all-MiniLM-L6-v2"}),
        ),
    ),
}


def make(folder: Path) -> None:
    """Make the runs of a sample and write its workspace file. folder: with the files of the sample;
    its name says which of `SHIPPED` it is."""
    shipped = SHIPPED[folder.name]
    loaded = load(sources_from_path(folder), name=shipped.name)
    with tempfile.TemporaryDirectory() as home:
        workspace = Workspace(Path(home))
        workspace.save_dataset(loaded.dataset, source="sample", report_json=loaded.report.to_json())
        made: dict[str, Run] = {}
        for wish in shipped.runs:
            made[wish.name] = run = _made(loaded.dataset, wish, made)
            workspace.save_run(run)
        with runs_of(folder).open("wb") as target:
            sharing.export(workspace, target, __version__)


def _made(dataset: Dataset, wish: Rerank | Fuse, made: Mapping[str, Run]) -> Run:
    if isinstance(wish, Rerank):
        reranker = create(wish.reranker, wish.settings)
        able = get(wish.reranker).able(reranker.settings)
        run = rerank(dataset, reranker, capabilities=able, timing=TIMING)
        run = replace(run, name=wish.name)
    else:
        parts = [
            CombinedRun(FIRST_STAGE, dataset.candidates)
            if part == FIRST_STAGE
            else CombinedRun(part, made[part].ranking, made[part])
            for part in wish.parts
        ]
        run = combining.fuse(dataset, parts, wish.how, wish.name)
    return replace(
        run,
        machine={**run.machine, SHIPPED_WITH: "sample"},
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", choices=list(SHIPPED), help="only this one")
    only = parser.parse_args().sample
    for sample in SAMPLES.values():
        if sample.name in SHIPPED and only in (None, sample.name):
            make(sample)
