"""Reports of the samples and of one small study."""

from datetime import datetime

import pytest

from rankdash.core.base.shipped import SAMPLES, runs_of
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of
from rankdash.core.words import prices
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import import_workspace
from rankdash.features.queries import report_query
from rankdash.features.report import report as report_report
from rankdash.kit.html.html_page import Draft
from tests.reporting.builders import study_of


@pytest.fixture(scope="session")
def better() -> Study:
    return study_of()


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Study]:
    """Language → its sample with the first three of the runs that are shipped with it."""
    found = {}
    for language, folder in SAMPLES.items():
        workspace = Workspace(tmp_path_factory.mktemp(language))
        import_workspace.bring_in(workspace, runs_of(folder), "the sample")
        [row] = workspace.datasets()
        data = workspace.dataset(row.id)
        runs = [workspace.run(each.id) for each in workspace.runs(row.id)][:3]
        found[language] = Study.on(
            "ndcg@10",
            dataset=data,
            systems=systems_of(data, runs),
            baseline=FIRST_STAGE,
            challengers=tuple(run.id for run in runs),
        )
    return found


class Clock(datetime):
    """A fixed date, so that reports equal the approved ones."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 27, tzinfo=tz)


@pytest.fixture(autouse=True)
def _today(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (report_report, prices, report_query):
        monkeypatch.setattr(module, "datetime", Clock)


@pytest.fixture
def in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace charts by their text, because drawing takes most of the time."""

    def chart(_draft: Draft, drawing) -> str:
        return "" if drawing is None else f"<p>[{drawing.alt}]</p>"

    monkeypatch.setattr(Draft, "chart", chart)
