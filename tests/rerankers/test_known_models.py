"""The catalogue of known models and services: facts, dates, and the file that replaces it."""

import json
from datetime import date, timedelta

import pytest

from rankdash.core.base.errors import DataError
from rankdash.core.rerankers import catalogue, defaults, get, problems
from rankdash.core.rerankers.kinds.endpoint import DIALECTS
from rankdash.core.value.prices import shipped
from rankdash.core.words import prices
from rankdash.features.run.command_rerank import rerankers_by_name
from tests.rerankers.test_defaults import data_of, knows_all

READ = catalogue.parse(catalogue.SHIPPED.read_bytes(), "models.toml")
ENTRIES = (*READ.services, *READ.models)
ONE = """
[[service]]
id = "jina"
title = "Jina"
seen_on = 2026-11-01
source = "here"

[[model]]
id = "old"
service = "jina"
languages = ["en"]
seen_on = 2026-11-01
source = "here"
"""


@pytest.fixture
def replaced(tmp_path, monkeypatch):
    """Return the function that replaces the catalogue by a file with this text."""

    def by(text: str) -> catalogue.Catalogue:
        file = tmp_path / "known.toml"
        file.write_text(text)
        monkeypatch.setenv(catalogue.VARIABLE, str(file))
        catalogue.loaded.cache_clear()
        return catalogue.loaded()

    yield by
    monkeypatch.undo()
    catalogue.loaded.cache_clear()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda each: each.id)
def test_every_entry_has_a_source_and_dates_in_order(entry):
    assert entry.source and date(2026, 11, 1) <= entry.seen_on
    for day in (entry.released, entry.sunset if entry.status == "ended" else None):
        assert day is None or date(2015, 1, 1) < day <= entry.seen_on
    assert not entry.ended(entry.seen_on) or entry.sunset is not None
    if entry.sunset is not None:
        assert not entry.ended(entry.sunset - timedelta(days=1))
        assert entry.ended(entry.sunset)


def test_a_form_offers_only_models_that_can_be_loaded():
    [spec] = [each for each in get("cross-encoder").settings if each.name == "model"]
    needs = {each.id: each.needs for each in READ.models if not each.service}
    assert {needs[each] for each in spec.suggestions} == {""}
    assert {*needs.values()} == {"", "code", "modules"}


def test_ids_are_unique_and_successors_exist():
    names = [(getattr(each, "service", None), each.id) for each in ENTRIES]
    assert len({*names}) == len(names)
    ids = {each.id for each in READ.models}
    assert {each.successor for each in READ.models if each.successor} <= ids
    assert all(each.successor != each.id for each in READ.models)


def test_services_prices_and_defaults_are_declared_once():
    services = {each.id for each in READ.services}
    hosted = {each.service for each in READ.models if each.service}
    assert hosted <= services
    keys = {each.key for each in shipped()}
    assert {each.price for each in READ.models if each.price} <= keys
    # The formats of model servers have no entry; each hosted service has a default that exists.
    for name, dialect in DIALECTS.items():
        if name in services:
            default = catalogue.known(dialect.model, name)
            assert default is not None and default.status in ("current", "")
            assert not default.ended(default.seen_on)


def test_a_past_sunset_is_not_offered():
    before, after = date(2026, 9, 3), date(2026, 9, 4)
    assert "zeroentropy" in catalogue.ended(after) - catalogue.ended(before)
    data = data_of("return an item", "how to return")
    offered = {
        day: {each.model.id for each in defaults.candidates(data, knows_all, today=day)}
        for day in (before, after)
    }
    assert offered[before] - offered[after] == {"zerank-2"}
    [price] = [each for each in shipped() if each.key == "zeroentropy-zerank-2"]
    assert catalogue.ended_price(price.key, before) is None
    assert catalogue.ended_price(price.key, after) == after
    assert prices.words(price).endswith("ended on 2026-09-04")


def test_a_file_replaces_the_catalogue(replaced):
    found = replaced(ONE)
    assert ([each.id for each in found.models], found.problem) == (["old"], None)
    assert DIALECTS["jina"].model == "old" and DIALECTS["cohere"].model == ""
    assert DIALECTS["vllm"].model
    listed = rerankers_by_name()["endpoint"]
    assert [each["id"] for each in listed["models"]] == ["old"]
    assert json.dumps(listed)
    # A model ends with its service.
    ended = replaced(ONE.replace('title = "Jina"', 'title = "Jina"\nsunset = 2026-01-01'))
    assert ended.models[0].ended(date(2026, 1, 1))


def test_a_broken_file_is_reported_and_the_shipped_catalogue_is_used(replaced):
    found = replaced("[[model]]\nid = 3")
    assert found.models == READ.models
    assert "RANKDASH_CATALOGUE" in str(problems()[-1])
    assert "known.toml" in str(found.problem)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('id = "old"', 'id = "old"\nscore = 1', "the field 'score' is unknown"),
        ('languages = ["en"]', "", "languages is missing"),
        ('source = "here"', "", "source is missing"),
        ("2026-11-01", '"soon"', "seen_on is not a date"),
        ('languages = ["en"]', 'languages = "en"', "languages is not a list"),
        ('id = "old"', 'id = "old"\nstatus = "fine"', "status is not one of current"),
        ('id = "old"', 'id = "old"\nstatus = "ended"', "sunset is missing"),
        ('id = "old"', 'id = "old"\nsize = -1', "size is not a whole number"),
        ('id = "old"', 'id = "old"\nencoder = 1', "encoder is not true or false"),
        ('id = "old"', 'id = "old"\nsuccessor = "new"', "successor 'new' is not listed"),
        ('service = "jina"', 'service = "other"', "other is not listed"),
        ("[[model]]", "[[models]]", "no list called model"),
        ("[[model]]", "[[model", "cannot be read"),
    ],
)
def test_a_wrong_entry_is_refused_by_name(old, new, reason):
    with pytest.raises(DataError, match=reason):
        catalogue.parse(ONE.replace(old, new).encode(), "known.toml")


def test_a_repeated_id_is_refused():
    model = ONE[ONE.index("[[model]]") :]
    with pytest.raises(DataError, match="the id 'old' is repeated"):
        catalogue.parse((ONE + model).encode(), "known.toml")
