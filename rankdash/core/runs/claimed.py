"""What a worker has claimed, while it works on it: it beats, is told to stop, and ends in words."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from rankdash.core.base.errors import RankdashError, RerankerError, StoreError
from rankdash.core.base.redaction import redact
from rankdash.core.runs.runner import Cancelled
from rankdash.core.workspace.jobs.explanations import Explanations
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import Ending, Owner
from rankdash.core.workspace.jobs.queue import Queue

BEAT_SECONDS = 1.0
_log = logging.getLogger(__name__)


class Claimed:
    """A job, an explanation or a judge. stopping: is set when the worker has to end. lost: whether
    it was cancelled, deleted or taken over."""

    def __init__(
        self,
        rows: Queue | Explanations | StoredJudges,
        row_id: str,
        owner: Owner,
        stopping: threading.Event,
    ) -> None:
        self._rows, self._id, self._owner = rows, row_id, owner
        self._stopping, self._lost, self._ended = stopping, threading.Event(), threading.Event()

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    def has_to_stop(self) -> bool:
        return self.lost or self._stopping.is_set()

    def carry_out(self, work: Callable[[], Mapping[str, str]]) -> None:
        """Do the work and record how it ended; errors end the work, not the worker. work: gives
        what is kept of it."""
        beating = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        beating.start()
        try:
            kept = work()
        except Cancelled:
            self._finish("interrupted" if self._stopping.is_set() else "cancelled")
        except RankdashError as error:
            _log.error("%s %s failed: %s", self._rows.table, self._id, error)
            self._finish("failed", error)
        except Exception as error:  # noqa: BLE001 - one that is bad must not stop the others
            _log.exception("%s %s failed", self._rows.table, self._id)
            self._finish("failed", self._unexpected(error))
        else:
            self._finish("done", None, **kept)
        finally:
            self._ended.set()
            beating.join()

    def _finish(self, state: Ending, error: RankdashError | None = None, **kept: object) -> None:
        self._rows.finish(self._id, self._owner, state, error, **kept)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            try:
                if not self._rows.beat(self._id, self._owner):
                    self._lost.set()
            except StoreError as error:
                # The next beat may get through; if none does, readers see the silence.
                _log.warning("No heartbeat: %s", error)

    def _unexpected(self, error: Exception) -> RerankerError:
        return RerankerError(
            "The explanation stopped at an unexpected error ({kind}: {text})."
            if isinstance(self._rows, Explanations)
            else "The run stopped at an unexpected error ({kind}: {text}).",
            remedy="The worker's log in the workspace has the details.",
            kind=type(error).__name__,
            text=redact(str(error))[:300],
        )
