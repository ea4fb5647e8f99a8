"""Parts of a JSON document, each with its line."""

from rankdash.readers.parse.json_lines import RecordPlaces


def test_of_a_key_that_stands_twice_the_last_is_meant_as_a_decoder_means_it():
    places = RecordPlaces('{"a": 1,\n "b": 2,\n "a": 3}')
    found = places.member(places.outermost(), "a")
    assert (found.value, found.line) == (3, 3)
    assert places.member(places.outermost(), "c") is None
