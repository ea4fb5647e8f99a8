import pytest

from rankdash.store.notes.corrections import Corrections
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.sidebar import view
from rankdash.ui.sidebar.view import LARGEST_CUTOFF, cutoff_of
from rankdash.ui.state import stored


@pytest.mark.parametrize(
    ("value", "cutoff"),
    [
        ("1", 1),
        ("10", 10),
        (str(LARGEST_CUTOFF), 1000),
        (str(LARGEST_CUTOFF + 1), None),
        ("9" * 5000, None),
        ("0", None),
        ("-1", None),
        ("all", None),
        ("", None),
        (None, None),
        # A digit to Python, and no number in an address.
        ("٣", None),
    ],
)
def test_a_cutoff_is_read_from_1_to_the_largest(value, cutoff):
    assert cutoff_of(value) == cutoff


class WholePageError(Exception):
    """In place of drawing the whole page."""


@pytest.mark.parametrize("in_force", [True, False])
def test_a_fragment_goes_on_until_labels_are_corrected_and_holds_no_numbers(
    workspace, request, monkeypatch, in_force
):
    dataset_id = request.getfixturevalue("stored")

    def whole_page() -> None:
        raise WholePageError

    def drawn() -> Study:
        layer = Corrections(workspace).layer(dataset_id)
        corrected = in_force and layer.count
        shown = stored.with_corrections(dataset_id, layer.revision) if corrected else dataset_id
        return Study(
            dataset=stored.dataset(shown),
            systems=stored.systems(shown),
            baseline=FIRST_STAGE,
            challengers=(),
            corrections=layer.count,
            dataset_id=shown,
        )

    monkeypatch.setattr(view.st, "rerun", whole_page)
    for label in (0.0, 1.0):
        study = drawn()
        values = study.evaluations[FIRST_STAGE].values
        again = view.again(study)
        assert again is not study
        assert again.evaluations[FIRST_STAGE].values is not values
        assert (again.evaluations[FIRST_STAGE].values == values).all()
        Corrections(workspace).correct(dataset_id, ("q1", "d3"), label, "")
        # Another revision of as many corrections changes nothing where none is in force.
        if in_force or label == 0.0:
            with pytest.raises(WholePageError):
                view.again(study)
        else:
            view.again(study)
