"""The section "Labels that look wrong" of the page Data, its file, and the command."""

import io
import json
import random

import pandas as pd
import pytest

from rankdash.core.readers import Source
from rankdash.core.readers.loading import load
from rankdash.core.workspace.notes import Corrections
from rankdash.features.data import page_labels
from tests.approved import table
from tests.stored import keep_lists
from tests.ui.conftest import opened_at
from tests.ui.page_text import page_text
from tests.ui.sessions import part

QUERIES = 24
DOCS = 12


def rows(*, shift: int = 0, queries: int = QUERIES) -> str:
    """Return CSV of queries with twelve documents each, of which the first three contain the words
    of the query and are relevant. Wrong labels: the first document of q1 is not relevant, the last
    one of q2 is, and only one of two equal texts of q0 has a label. shift: of all labels."""
    draw = random.Random(7)
    words = [f"word{at}" for at in range(3000)]
    asked = [draw.sample(words, 3) for _ in range(queries)]
    lines = ["query_id,query,doc_id,document,label,score"]
    for query in range(queries):
        source = asked[(query + shift) % queries]
        labels = [2, 1, 1, 0, *[""] * 7, ""]
        if query < 3:
            labels[(10, 0, 11)[query]] = (1, 0, 1)[query]
        for doc, label in enumerate(labels):
            text = " ".join([*(source if doc < 3 else []), *draw.sample(words, 6)])
            if not query and doc > 9:
                # A formula of a spreadsheet.
                text = ("=Equal", "=EQUAL ")[doc - 10]
            cells = f"q{query}", " ".join(asked[query]), f"q{query}d{doc}", text, label, DOCS - doc
            lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def kept(workspace, name, **changed):
    """Store the rows, and a system that exchanges the documents on ranks 2 and 3."""
    loaded = load([Source("rows.csv", rows(**changed).encode())], name=name)
    data = workspace.save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    order = [0, 2, 1, *range(3, DOCS)]
    lists = [
        (query, [f"{query}d{at}" for at in order], [-1.0 * at for at in range(DOCS)])
        for query in loaded.dataset.candidates.query_ids
    ]
    keep_lists(workspace, data, lists, f"again *{name}*", f"again-{name}")
    return data


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    with opened_at(tmp_path_factory.mktemp("home")) as workspace:
        yield {
            "one wrong label of each kind": kept(workspace, "Shop"),
            "labels of the next query": kept(workspace, "Shifted", shift=1),
            "few queries": kept(workspace, "Few", queries=5),
        }


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_checks_and_their_candidates(sets, approved, lang):
    shown = {
        why: page_text(part(page_labels.draw, data, lang=lang, chosen={"data": data}))
        for why, data in sets.items()
    }
    approved(f"pages/doubtful.{lang}", table(shown))


def test_a_row_opens_its_query_and_a_correction_clears_the_candidate(sets, monkeypatch):
    data, opened, rows = sets["one wrong label of each kind"], [], [0]
    monkeypatch.setattr(page_labels.view, "open_query", opened.append)
    real = page_labels.st.dataframe
    monkeypatch.setattr(
        page_labels.st,
        "dataframe",
        lambda *shown, **how: real(*shown, **how) and {"selection": {"rows": rows}},
    )
    part(page_labels.draw, data, chosen={"data": data})
    rows[0] = 99
    assert not part(page_labels.draw, data, chosen={"data": data}).exception
    assert opened == ["q0"]
    Corrections(page_labels.stored.workspace()).correct(data, ("q0", "q0d11"), 1.0, "Ann")
    assert "q0d11" not in page_text(part(page_labels.draw, data, chosen={"data": data}))


@pytest.mark.parametrize("form", ["text", "json", "csv"])
def test_the_command_lists_the_same_and_no_cell_runs_as_a_formula(tmp_path, capsys, form):
    from rankdash.app.command import main

    file = tmp_path / "rows.csv"
    file.write_text(rows())
    assert main(["check", str(file), "--labels", "--format", form]) == 0
    out = capsys.readouterr().out
    assert "q0d11" in out
    if form == "json":
        (candidate,) = json.loads(out)["doubtful_labels"]["candidates"]
        assert (candidate["doc_id"], candidate["twin"]) == ("q0d11", "q0d10")
    if form == "csv":
        (line,) = pd.read_csv(io.StringIO(out.removeprefix("\ufeff"))).to_dict("records")
        assert line["document"] == "'=EQUAL" and "q0d10" in line["evidence"]


@pytest.mark.parametrize("more", [["--format", "csv"], ["--judge", "grades.csv"]])
def test_options_without_labels_are_refused(tmp_path, capsys, more):
    from rankdash.app.command import main

    assert main(["check", str(tmp_path), *more]) != 0
    assert "--labels" in capsys.readouterr().err
