"""Rankings fetched from a search engine: its description, the requests, and the answers."""
