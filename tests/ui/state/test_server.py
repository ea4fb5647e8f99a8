"""The server process stays light."""

import subprocess
import sys

from tests.sets import ROOT

HEAVY = ("torch", "sentence_transformers", "transformers", "bm25s", "jieba")


def test_the_server_imports_no_model_library():
    code = (
        "import sys, rankdash.ui.state.server, rankdash.ui.sidebar.sidebar, "
        "rankdash.ui.sidebar.view, rankdash.ui.queries.query_detail, "
        "rankdash.ui.run.run_form, rankdash.ui.data.check_view\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
