"""Keys on their way from a server to its worker: through a pipe, into memory, never onto a disk."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping

from rankdash.core.rerankers.remote.keys import Place

# Longer is no key, and a pipe takes so much at once or not at all.
LONGEST_LINE_BYTES = 4000

# How long what was claimed waits for a key that was typed for it.
KEY_SECONDS = 0.5


def line(job_id: str, keys: Mapping[str, str]) -> bytes:
    """What a server writes: variable → key for one job."""
    return json.dumps({"job": job_id, "keys": dict(keys)}).encode() + b"\n"


class Handover:
    """The keys that a worker was given, by job. One thread feeds, another asks."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[str, str]] = {}
        self._arrived = threading.Condition()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """What came through the pipe, whole lines or parts of them."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for text in lines:
            try:
                found = json.loads(text)
                job_id, keys = str(found["job"]), dict(found["keys"])
            except (ValueError, KeyError, TypeError):
                # Not repeated anywhere: it may hold a key.
                continue
            with self._arrived:
                self._keys[job_id] = keys
                self._arrived.notify_all()

    def take(self, job_id: str, patience: float = 0.0) -> Mapping[str, str]:
        """variable → key for the job, which are not held here any longer; waits so many seconds for
        keys that are on their way."""
        with self._arrived:
            self._arrived.wait_for(lambda: job_id in self._keys, patience)
            return self._keys.pop(job_id, {})

    def take_for(self, job_id: str, place: Place | None) -> Mapping[str, str]:
        """As `take`, waiting where a key is needed that the environment has not. It is sent before
        the job is queued, so that the wait is one for another thread to put it down."""
        awaited = place is not None and place.variable and not place.in_environment
        return self.take(job_id, KEY_SECONDS if awaited else 0.0)
