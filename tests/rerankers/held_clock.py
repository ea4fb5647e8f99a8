"""A clock that the test controls, for everything that waits or times out."""

import threading
import time
from collections.abc import Callable

from rankdash.core.rerankers.remote.connection import Clock


class HeldClock:
    """A clock that moves at each sleep, by `step` at each reading, and by itself only if `real`.

    slept: the seconds of all sleeps. meanwhile: a function called once, during the next sleep.
    """

    def __init__(self, jitter: float = 0.0) -> None:
        self.slept: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.real, self.step = False, 0.0
        self.clock = Clock(self.now, self.sleep, lambda: jitter)
        self._ahead, self._lock = 100.0, threading.Lock()

    def now(self) -> float:
        self._ahead += self.step
        return self._ahead + (time.perf_counter() if self.real else 0.0)

    def sleep(self, seconds: float) -> None:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        with self._lock:
            self.slept.append(seconds)
        meanwhile()
        with self._lock:
            self._ahead += seconds
