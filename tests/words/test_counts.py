"""One query is one."""

import pytest

from rankdash.words.queries import query_count


@pytest.mark.parametrize(
    ("n", "said"), [(0, "0 queries"), (1, "1 query"), (2, "2 queries"), (2000, "2,000 queries")]
)
def test_counts(n, said):
    assert query_count(n) == said
