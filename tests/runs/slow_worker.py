"""The real worker with a reranker that takes its time and writes down what it scored.

Started by tests: slow_worker.py LOG MILLISECONDS KIND then the arguments of the worker. The kind is
"alone" for a reranker that is asked one query at a time, "blocks" for one that scores across
queries and whose scores may be kept.
"""

import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from rankdash.errors import UnavailableError
from rankdash.rerankers import Capabilities, Scored, get
from rankdash.runs import claimed, runner, worker

log, seconds, blocks = Path(sys.argv[1]), float(sys.argv[2]) / 1000, sys.argv[3] == "blocks"


def wait_while_held(scored):
    """A test that has to do something before the worker goes on has written down from how many
    queries on it waits."""
    hold = log.with_suffix(".hold")
    while hold.exists() and scored >= int(hold.read_text() or 0):
        time.sleep(0.02)


class Slow:
    name = "bm25"

    def __init__(self, settings):
        self.settings = settings

    def prepare(self, corpus):
        if self.settings["k1"] == 9.0:
            raise UnavailableError("No model {name!r} here.", remedy="Give a folder.", name="nine")
        if self.settings["k1"] == 8.0:
            raise RuntimeError("a bug in the model's code")
        if self.settings["k1"] == 7.0:
            wait_while_held(0)

    def fingerprint(self):
        return "slow" if blocks else ""

    def score(self, requests):
        return [self._score(request) for request in requests]

    def _score(self, request):
        wait_while_held(len(log.read_text().split()) if log.exists() else 0)
        with log.open("a") as lines:
            lines.write(f"{request.query_id}\n")
        time.sleep(seconds)
        if self.settings["k1"] == 6.0 or request.query_id == "q5":
            return Scored.failed(len(request.doc_ids), "a time-out")
        values = [zlib.crc32(f"{request.query_id} {doc}".encode()) for doc in request.doc_ids]
        return Scored(
            np.array(values, dtype=np.float64),
            tokens=np.full(len(values), 3),
            full=np.full(len(values), 4),
        )


kind = replace(get("bm25"), capabilities=Capabilities(across_queries=blocks))
worker.get = lambda name: kind
worker.create = lambda name, settings: Slow(settings)
runner.BATCH_SECONDS = 0.2
claimed.BEAT_SECONDS = 0.1
sys.exit(worker.main(sys.argv[4:]))
