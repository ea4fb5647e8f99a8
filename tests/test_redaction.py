"""Text that looks like a credential is hidden, and text about credentials is not."""

import pytest

from rankdash.core.base.text import MARK, redact


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("invalid api token: Bearer abc", f"invalid api token: Bearer {MARK}"),
        ("Authorization: Bearer secretkey", f"Authorization: Bearer {MARK}"),
        ("{'authorization': 'Bearer qw", f"{{'authorization': 'Bearer {MARK}"),
        (r'{\\"Authorization\\": \\"Basic dXNlcjpw', rf'{{\\"Authorization\\": \\"Basic {MARK}'),
        ("('authorization', 'Bearer qwe')", f"('authorization', 'Bearer {MARK}')"),
        ("Authorization%3A%20Bearer%20sk-abc", f"Authorization%3A%20Bearer%20{MARK}"),
        ("x-api-key: 9f8a7b, accept: */*", f"x-api-key: {MARK}, accept: */*"),
        ("api_key=AB12&q=x", f"api_key={MARK}&q=x"),
        ("Incorrect API key provided: ab12cd", f"Incorrect API key provided: {MARK}"),
        ("no access for sk-typ", f"no access for {MARK}"),
        ("hf_letters-sk-abc in one word", f"hf_letters-{MARK} in one word"),
        ("jina_12ab34cd is over its quota", f"{MARK} is over its quota"),
    ],
)
def test_what_looks_like_a_credential_is_hidden(text, hidden):
    assert redact(text) == hidden
    assert redact(hidden) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "a bearer token is required",
        "authorization: missing",
        "Authorization header is missing",
        "api key: check your settings",
        "Invalid API key: https://a.example/keys",
        "batch size 64 > maximum allowed batch size 32",
        "the model jina-reranker-v2-base-multilingual has no task-12",
        "max_tokens: 512 is too large; request 8f14e45f-ceea-467f",
    ],
)
def test_a_sentence_about_credentials_stays(text):
    assert redact(text) == text
