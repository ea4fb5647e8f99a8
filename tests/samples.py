"""Makes the runs of a sample, as its NOTICE.md describes them, and writes them with the sample into
its workspace file: `python -m tests.samples`.

Rankings are the same each time; latencies depend on the machine, which should run nothing else.
"""

import argparse
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rankdash import __version__
from rankdash.core.base.shipped import SAMPLES, runs_of
from rankdash.core.data.ranking import SHIPPED_WITH, Run
from rankdash.core.readers import sources_from_path
from rankdash.core.readers.loading import load
from rankdash.core.rerankers import create, get
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.runs import combining
from rankdash.core.runs.combining import FIRST_STAGE, CombinedRun
from rankdash.core.runs.plan import Timing
from rankdash.core.runs.runner import rerank
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import archive

# The folder of a sample → its name, and name → reranker, settings and parts of each of its runs, in
# the order in which they are listed; `FIRST_STAGE` is the data set's own ranking.
SHIPPED = {
    "helpcentre": (
        "Help centre",
        {
            "bge-small": ("bi-encoder", {"model": "packaged/bge-small-en-v1.5"}, ()),
            "MiniLM cross-encoder": ("cross-encoder", {}, ()),
            "First stage + bge-small (RRF)": ("fusion", {}, (FIRST_STAGE, "bge-small")),
            "BM25 without stemming": ("bm25", {"language": "none"}, ()),
        },
    ),
    "helpcentre_zh": (
        "帮助中心",
        {
            "e5 多语言": ("bi-encoder", {"model": "packaged/multilingual-e5-small"}, ()),
            "初排 + e5（RRF）": ("fusion", {}, (FIRST_STAGE, "e5 多语言")),
            "MiniLM（英文模型）": ("bi-encoder", {"model": "all-MiniLM-L6-v2"}, ()),
        },
    ),
}


def make(folder: Path) -> None:
    """Make the runs of a sample and write its workspace file. folder: with the files of the sample;
    its name is a key of `SHIPPED`."""
    title, wishes = SHIPPED[folder.name]
    loaded = load(sources_from_path(folder), name=title)
    dataset = loaded.dataset
    with tempfile.TemporaryDirectory() as home:
        workspace = Workspace(Path(home))
        workspace.save_dataset(dataset, source="sample", report_json=loaded.report.to_json())
        made: dict[str, Run] = {}
        for name, (kind, settings, parts) in wishes.items():
            if parts:
                fused = [
                    CombinedRun(part, made[part].ranking, made[part])
                    if part in made
                    else CombinedRun(part, dataset.candidates)
                    for part in parts
                ]
                run = combining.fuse(dataset, fused, Fusion(), name)
            else:
                own = create(kind, settings)
                able = get(kind).able(own.settings)
                run = rerank(dataset, own, capabilities=able, timing=Timing(repeats=3))
            made[name] = replace(
                run,
                name=name,
                machine={**run.machine, SHIPPED_WITH: "sample"},
                created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            )
            workspace.save_run(made[name])
        with runs_of(folder).open("wb") as target:
            archive.export(workspace, target, __version__)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", choices=list(SHIPPED), help="only this one")
    only = parser.parse_args().sample
    for sample in SAMPLES.values():
        if sample.name in SHIPPED and only in (None, sample.name):
            make(sample)
