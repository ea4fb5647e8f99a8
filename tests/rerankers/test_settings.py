import math

import pytest

from rankdash.core.base.rules import SettingSpec, nearest, parse_settings
from rankdash.core.rerankers import get, kinds
from tests.rerankers.test_refused import SPECS
from tests.results import results, several

USUAL = {spec.name: spec.default for spec in SPECS}


def test_settings_and_ranges_are_as_approved(approved):
    """Defaults fill missing settings, and texts become typed values. Refused settings:
    `test_refused.py`."""

    def parsed(given):
        found = parse_settings(SPECS, given)
        assert all(type(found[spec.name]) is spec.type for spec in SPECS)
        return {name: value for name, value in found.items() if value != USUAL[name]}

    # Spaces around a free text are preserved; around a name they are removed.
    given = [{}, {"scale": 2}, {"batch_size": "16", "scale": "1e-1"}, {"prompt": "query: "}]
    given += [{"dtype": " bfloat16 ", "model": " tiny "}]
    given += [{"fast": text} for text in ("yes", "TRUE", "on", "1", " No ", "off", "0")]
    cases = several("{0}", parsed, given)
    for within in ((1, 512), (0, math.inf), None):
        spec = SettingSpec("n", 1, "N", "", within=within)
        ends = [value if math.isfinite(value) else None for value in (spec.least, spec.most)]
        assert all(spec.parse(value) == value for value in ends if value is not None)
        cases[f"within {within}"] = (*ends, spec.range)
    approved("rerankers/settings", results(cases))


def test_the_nearest_name_is_looked_for_in_any_case_and_there_may_be_none():
    assert nearest(" BATCH ", ["scale", "batch_size"]) == "batch_size"
    assert (nearest("x", ["scale"]), nearest("x", [])) == ("scale", "")


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_every_kind_describes_itself_and_accepts_its_own_defaults(kind):
    # The settings of a cascade depend on the other kinds: they are built again when these change.
    assert get(kind.name.upper()) is get(kind.name)
    assert get(kind.name).name == kind.name
    assert kind.title and kind.meaning
    for spec in kind.settings:
        assert spec.title and spec.help
        assert type(spec.default) is spec.type
        assert spec.parse(spec.default) == spec.default
        assert spec.parse(str(spec.default)) == spec.default
