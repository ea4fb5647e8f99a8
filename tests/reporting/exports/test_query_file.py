"""One query of a study as a file, made without the interface and without a workspace."""

import re
from dataclasses import replace

import pandas as pd

from rankdash.dataset import Dataset
from rankdash.i18n import gettext as _
from rankdash.i18n import speaking
from rankdash.reporting.exports import query_file
from rankdash.store.notes.corrections import Correction
from rankdash.store.notes.notes import Note
from tests.reporting.exports.test_exports import study_of


def cells(section: str) -> list[str]:
    return [" ".join(each.split()) for each in re.findall(r"<td.*?>(.*?)</td>", section)]


def test_the_file_has_the_values_the_note_and_the_corrected_labels():
    study = study_of()
    query = "q1"
    study = replace(study, notes={query: Note(query, ("odd",), "ask <Ann>", "")})
    corrected = Correction(query, "d1", None, "Ann", "2026-11-21T06:14:49+00:00")
    made = query_file.html(study, study.challengers[0], query, [corrected], {"d1": 1.0}).decode()
    pair = study.pairs(study.challengers[0]).set_index("query_id").loc[query]
    before, after = f"{pair['before']:.3f}", f"{pair['after']:.3f}"
    change = f"{pair['delta']:+.3f}"
    assert re.findall(r"<h1.*?>(.*?)</h1>", made) == ["how to return q1"]
    sections = dict(re.findall(r"<section><h2>(.*?)</h2>(.*?)</section>", made, re.DOTALL))
    assert cells(sections["What it scored"]) == [
        *("First stage", before, "–", "100%", "better", after, change, "100%"),
        *("best order of the candidates", "1.000", change, "–"),
    ]
    assert re.findall(r">([^<>]+)<", sections["Tags and note"]) == ["odd", "ask &lt;Ann&gt;"]
    assert cells(sections["Corrected labels"]) == [
        *("words", "1", "not judged", "Ann", "Nov 21, 2026, 6:14:49 AM")
    ]
    assert "<script src" not in made


def test_each_card_says_where_its_document_stands_in_the_other_list_and_how_it_moved():
    study = study_of()
    made = query_file.html(study, study.challengers[0], "q1").decode()
    card = r'<div class="(card[^"]*)"><b>(\d+)</b> <a[^>]*>(.*?)</a><p class="muted">(.*?)</p>'
    assert re.findall(card, made) == [
        ("card", "1", "d0", "0 of 1 · ▼ better: rank 2 · score 4.000"),
        ("card", "2", "d1", "0 of 1 · ▼ better: rank 3 · score 4.000"),
        ("card", "3", "d2", "0 of 1 · ▼ better: rank 4 · score 3.000"),
        ("card relevant", "4", "d3", "1 of 1 · ▲ better: rank 1 · score 3.000"),
        ("card relevant", "1", "d3", "1 of 1 · ▲ First stage: rank 4 · score 4.000"),
        ("card", "2", "d0", "0 of 1 · ▼ First stage: rank 1 · score 3.000"),
        ("card", "3", "d1", "0 of 1 · ▼ First stage: rank 2 · score 2.000"),
        ("card", "4", "d2", "0 of 1 · ▼ First stage: rank 3 · score 1.000"),
    ]
    # Of a list that is longer than the cutoff its first k are shown.
    short = query_file.html(replace(study, cutoff=3), study.challengers[0], "q1").decode()
    assert [found[2] for found in re.findall(card, short)] == ["d0", "d1", "d2", "d3", "d0", "d1"]


def test_the_file_says_whose_fault_it_is_and_what_was_not_retrieved():
    study = study_of()
    lost = pd.DataFrame([("q1", "far", 1.0)], columns=["query_id", "doc_id", "label"])
    far = pd.DataFrame(
        [("far", "Far away", "<b>never</b> ranked")], columns=["doc_id", "title", "text"]
    )
    data = study.dataset
    study = replace(
        study,
        dataset=Dataset(
            data.name,
            data.queries,
            pd.concat([data.documents, far], ignore_index=True),
            pd.concat([data.qrels, lost], ignore_index=True),
            data.candidates,
        ),
        dataset_id="with a document that no ranking holds",
    )
    made = query_file.html(study, study.challengers[0], "q1").decode()
    sections = dict(re.findall(r"<section><h2>(.*?)</h2>(.*?)</section>", made, re.DOTALL))
    assert "<strong>Fault: retriever</strong>" in sections["Why it changed"]
    assert "1 relevant document was not retrieved." in sections["Why it changed"]
    missed = sections["Relevant documents that were not retrieved"]
    assert "Far away" in missed
    assert "&lt;b&gt;never&lt;/b&gt; ranked" in missed


def test_the_file_is_in_the_language_of_the_moment():
    study = study_of()
    with speaking("zh"):
        made = query_file.html(study, study.challengers[0], "q1").decode()
    with speaking("zh"):
        assert _("Why it changed") != "Why it changed"
        assert _("Why it changed") in made
    assert "Corrected labels" not in made
