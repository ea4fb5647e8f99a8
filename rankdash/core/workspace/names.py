"""What everything in a workspace is called, and whether that may have changed."""

from __future__ import annotations

import time
from itertools import groupby
from operator import itemgetter

from rankdash.core.workspace.database import files_of
from rankdash.core.workspace.workspace import Workspace

Names = dict[str, tuple[tuple[str, str, str, str], ...]]
"""Id of a data set → (its id, table, id, name) of itself, then of its judges, pin and runs."""

# A file that was written so lately may be written again within the same tick of its clock.
_LATELY_NS = 100_000_000
_QUERY = """
    SELECT id, 'datasets', id, name FROM datasets
    UNION ALL SELECT dataset_id, 'runs', id, name FROM runs
    UNION ALL SELECT dataset_id, 'judges', id, name FROM judges
    UNION ALL SELECT dataset_id, 'pins', run_id, '' FROM pins
    ORDER BY 1, 2, 3
"""


def names(workspace: Workspace) -> Names:
    """Raises StoreError where the workspace cannot be read."""
    with workspace.database.reading() as db:
        rows = [tuple(row) for row in db.execute(_QUERY)]
    return {dataset_id: tuple(group) for dataset_id, group in groupby(rows, itemgetter(0))}


class Watch:
    """The names of a workspace, read again only where its files were written to since."""

    def __init__(self) -> None:
        self._stamp: object = None
        self._names: Names = {}

    def names(self, workspace: Workspace) -> Names:
        """As the function; two stats where nothing was written."""
        stamp = _stamp(workspace)
        if stamp is None or stamp != self._stamp:
            self._names = names(workspace)
            self._stamp = stamp
        return self._names


def _stamp(workspace: Workspace) -> object:
    """Another one whenever the database is another; None where that cannot be told."""
    found = []
    file, log, _index = files_of(workspace.database.file)
    for each in (file, log):
        try:
            stat = each.stat()
        except OSError:
            continue
        # An empty log comes and goes with whoever reads.
        if stat.st_size:
            found.append((each.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    newest = max((each[-1] for each in found), default=0)
    return tuple(found) if newest < time.time_ns() - _LATELY_NS else None
