"""How fast a long piece of work goes, and how long what is left of it takes."""

from __future__ import annotations

from collections import deque

_RATE_BATCHES = 15

# Pairs that are there within so many seconds were kept from earlier, or a call before told them.
_AT_ONCE_SECONDS = 0.05


class Pace:
    """Pairs a second over the latest batches, and the time left at that pace."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque(maxlen=_RATE_BATCHES)

    def mark(self, seconds: float, pairs: int) -> None:
        """At `seconds` (any origin), `pairs` had been scored.

        What is there at once says nothing of the pace of what is left, and is left out of it.
        """
        if self._marks and seconds - self._marks[-1][0] < _AT_ONCE_SECONDS:
            gained = pairs - self._marks[-1][1]
            self._marks = deque(
                ((at, before + gained) for at, before in self._marks), _RATE_BATCHES
            )
        else:
            self._marks.append((seconds, pairs))

    def skip(self, seconds: float) -> None:
        """So many seconds since the latest mark went to something else."""
        self._marks = deque(((at + seconds, pairs) for at, pairs in self._marks), _RATE_BATCHES)

    @property
    def rate(self) -> float | None:
        if len(self._marks) < 2:
            return None
        (start, before), (end, after) = self._marks[0], self._marks[-1]
        return (after - before) / (end - start) if end > start and after > before else None

    def seconds_left(self, pairs: int) -> float | None:
        return pairs / self.rate if self.rate else None
