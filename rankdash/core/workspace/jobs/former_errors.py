"""Conversion of the errors of stored work to current wording.

A stored error contains messages in the wording of its version; translations exist only for the
current wording. Only the most frequent errors of version 0.2.0 are listed.
"""

# Former → current wording; the fields are the same.
REWORDED = {
    "Queries that could be scored: none of {count}. The first failed because: {reason}.": (
        "None of the {count} queries could be scored. First failure: {reason}."
    ),
    "Pairs that the judge graded: none of {count}. The first failed because: {reason}.": (
        "The judge graded none of the {count} pairs. First error: {reason}."
    ),
    "Resume retries them.": "Select Resume to retry them.",
    "The worker process was killed by signal {signal}, maybe for lack of memory.": (
        "The worker process was killed by signal {signal}, possibly because of a lack of memory."
    ),
    "The worker process ended by itself (exit code {code}): {reason}": (
        "The worker process ended with exit code {code}: {reason}"
    ),
    'Install them: pip install "rankdash[models]". BM25 and rerank services work without.': (
        'Install them: pip install "rankdash[models]". BM25 and rerank services work without them.'
    ),
    "The hub gives the model {model!r} only to those who accepted its terms.": (
        "The model {model!r} is available only to users who accepted its terms on the hub."
    ),
    "Accept them on the model's page and set HF_TOKEN, or give a local folder.": (
        "Accept the terms on the model's page and set HF_TOKEN, or use a local folder."
    ),
    "Type it into the form, or set the environment variable {variable} before rankdash starts. A "
    "typed key is never stored, so each run and each resume needs it again. If the service needs "
    "no key, tick that in the form, or give key_variable=none.": (
        "Enter the key in the form, or set the environment variable {variable} before you start "
        "rankdash. A key entered in the form is never stored, so each run and each resume needs it "
        "again. If the service needs no key, select that in the form, or pass key_variable=none."
    ),
}


def in_current_words(text: str) -> str:
    """Return a stored message or remedy in current wording; other texts unchanged."""
    return REWORDED.get(text, text)
