"""A reranker that scores pairs by hashes, for tests of runs on Ray.

Each of its processes writes its id to `log`. A query takes `ms` milliseconds; a query with `poison`
in its text kills the process.
"""

import os
import signal
import time
import zlib
from pathlib import Path

import numpy as np

from rankdash.core.rerankers import Capabilities, RerankerKind, Scored, SettingSpec


class Hashing:
    name = "hashing"

    def __init__(self, settings):
        self.settings = settings

    def prepare(self, corpus):
        self._known = set(corpus.texts)
        if self.settings["log"]:
            with Path(self.settings["log"]).open("a") as lines:
                lines.write(f"{os.getpid()}\n")

    def fingerprint(self):
        return "hashing"

    def score(self, requests):
        return [self._score(request) for request in requests]

    def _score(self, request):
        time.sleep(self.settings["ms"] / 1000)
        if self.settings["poison"] and self.settings["poison"] in request.query:
            os.kill(os.getpid(), signal.SIGKILL)
        if not self._known.issuperset(request.documents):
            return Scored.failed(len(request.doc_ids), "a text that is not in the corpus")
        values = [zlib.crc32(f"{request.query} {text}".encode()) for text in request.documents]
        return Scored(np.array(values, dtype=np.float64))


KIND = RerankerKind(
    "hashing",
    "Hashing",
    "Hashes of the pairs.",
    (
        SettingSpec("ms", 0, "Milliseconds", "For a query."),
        SettingSpec("poison", "", "Poison", "A query with it kills the process."),
        SettingSpec("log", "", "Log", "A file for the process ids."),
    ),
    Capabilities(across_queries=True),
    Hashing,
)
