"""Makes workspace.zip: a workspace of rankdash before folders carried records.

Made once, in a checkout of commit c86af1b, with this file at the same place:

    python -m tests.store.old.make tests/store/old/workspace.zip
"""

import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

from rankdash import sharing
from rankdash.analysis.reasons.occlusion import Explanation
from rankdash.ranking.ranking import Run
from rankdash.store import Workspace
from rankdash.store.jobs.explanations import Asked, Explanations
from rankdash.store.jobs.job_batches import write_part
from rankdash.store.jobs.leases import Owner
from rankdash.store.jobs.queue import Queue
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.notes import Notes
from rankdash.store.notes.pins import Pins
from rankdash.store.notes.run_notes import RunNotes
from rankdash.value.assumptions import Assumptions
from tests.stored import keep_lists, keep_rows

PART = {
    "query_id": "q1", "state": "done", "reason": "", "scores": [0.5, 0.25, 0.125, 0.0],
    "latency_ms": 1.0, "index_ms": float("nan"), "read": None, "full": None, "cached": 0,
    "calls": None,
}  # fmt: skip


def rows(verb: str) -> str:
    return "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},{verb} {q},d{d},document {d},{int(d == q)},{4 - d}\n"
        for q in range(4)
        for d in range(4)
    )


def fill(workspace: Workspace) -> None:
    shop, guide = (
        keep_rows(workspace, rows("return"), "Shop"),
        keep_rows(workspace, rows("find"), "Guide"),
    )
    best = [
        (f"q{q}", [f"d{q}", *(f"d{d}" for d in range(4) if d != q)], [4.0, 3.0, 2.0, 1.0])
        for q in range(4)
    ]
    made: list[Run] = []
    for number, dataset_id in enumerate((shop, shop, guide), start=1):
        lists = [(q, docs, [score / number for score in scores]) for q, docs, scores in best]
        run = keep_lists(workspace, dataset_id, lists, f"run {number}")
        made.append(
            replace(
                run,
                settings={"k1": 1.2, "model": "mini", "cased": False},
                machine={"cpu": "any", "logical_cpus": 2},
                depth=4,
                load_ms=12.5,
                created=f"2026-01-0{number}T03:04:05+00:00",
            )
        )
        workspace.save_run(made[-1])
    workspace.rename_run(made[1].id, "renamed")
    Notes(workspace).keep(shop, "q1", ["odd", "退货"], "look *here*")
    Notes(workspace).keep(guide, "q2", [], "看一下")
    layer = Corrections(workspace)
    layer.correct(shop, ("q1", "d0"), 1.0, "Ann")
    layer.correct(shop, ("q1", "d2"), 2.0, "Ann")
    layer.withdraw(shop, [("q1", "d2")])
    layer.correct(guide, ("q0", "d3"), None, "Bob")
    RunNotes(workspace).keep(made[0].id, "why it was made")
    Pins(workspace).pin(made[1].id)
    scenarios = {"careful": Assumptions(elasticity=0.25), "bold": Assumptions()}
    workspace.set_setting("scenarios", sharing.write_scenarios(scenarios))
    workspace.set_setting("sample opened", "yes")
    asked, owner = Asked(made[0].id, "q1", "d1", "term"), Owner("w", "host", 1)
    explained = Explanations(workspace)
    explained.ask(asked)
    explained.claim(owner)
    explained.finish(asked.id, owner, "done", result=Explanation(0.5, (), 5, 7).to_json())
    queue = Queue(workspace)
    job = queue.submit(
        dataset_id=shop, name="half done", reranker="bm25", settings={}, depth=None, sample=None,
        seed=0, job_id="a" * 16,
    )  # fmt: skip
    queue.claim(owner)
    write_part(workspace, job, [PART])
    queue.interrupt(owner.token)


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        workspace = Workspace.open(Path(made))
        fill(workspace)
        with workspace.database.reading() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in sorted(Path(made).rglob("*")):
                packed.write(file, file.relative_to(made))


if __name__ == "__main__":
    main(sys.argv[1])
