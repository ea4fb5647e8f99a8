"""The workspace folder: data sets, runs and the job queue, stored between sessions."""

from rankdash.core.workspace.database import DatasetRow, RunRow
from rankdash.core.workspace.workspace import Workspace

__all__ = ["DatasetRow", "RunRow", "Workspace"]
