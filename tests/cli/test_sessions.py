"""Every session in `tests/approved/cli` equals the present output of its commands."""

import pytest

from tests.cli.sessions import play
from tests.sets import ROOT

SESSIONS = sorted((ROOT / "tests" / "approved" / "cli").glob("*.txt"))


@pytest.mark.parametrize("session", SESSIONS, ids=lambda file: file.stem)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("no_plugin_stays")
def test_a_session_is_what_its_commands_write(session, run, approved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKDASH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    approved(f"cli/{session.stem}", play(session.read_text("utf-8"), run, monkeypatch))
