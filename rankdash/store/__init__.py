"""The workspace folder: data sets, runs and the job queue, kept between sessions."""

from rankdash.store.rows import DatasetRow, RunRow
from rankdash.store.workspace import Workspace

__all__ = ["DatasetRow", "RunRow", "Workspace"]
