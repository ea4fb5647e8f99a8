"""A clock that tests turn by hand."""


class Clock:
    """Nanoseconds that pass only when something says so."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def pass_ms(self, milliseconds):
        self.now += round(milliseconds * 1e6)
