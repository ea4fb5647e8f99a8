"""The switch of the language changes every word at once, those of choices too."""

from tests.ui.test_pages import open_page


def sent(box) -> str:
    """The words that a box is put to; "" where the browser keeps what it shows."""
    return box.proto.raw_value if box.proto.set_value else ""


def test_choices_are_sent_anew_in_the_words_of_the_other_language_and_once(app, stored):
    open_page(app, "overview", lang="en")
    app.query_params["lang"] = "zh"
    app.run()
    assert sent(app.selectbox(key="address.base")) == "初排"
    assert sent(app.selectbox(key="address.metric")) == "NDCG"
    app.run()
    assert sent(app.selectbox(key="address.base")) == ""


def test_choices_that_the_address_does_not_hold_are_sent_anew_too(app, stored):
    open_page(app, "run", lang="en")
    before = app.selectbox(key="run.latency").value
    app.query_params["lang"] = "zh"
    app.run()
    box = app.selectbox(key="run.latency")
    assert sent(box) in box.options
    assert "the" not in sent(box)
    assert box.value == before
