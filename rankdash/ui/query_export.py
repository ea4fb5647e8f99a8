"""One query as one file that needs no network: what the page shows, to send to someone."""

from __future__ import annotations

from rankdash.ui.frame import View


def button(view: View, challenger: str, query_id: str) -> None:
    """Offer the file; it is made when it is asked for."""
