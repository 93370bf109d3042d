"""What a check of a claim is, and what it finds."""

# A figure counts as met within this share of the paper's.
SIZE = 0.20


class Checks(dict):
    """The checks of a paper, by the ids of its claims: functions of a point's results."""

    def __init__(self, prefix):
        super().__init__()
        self.prefix = prefix

    def of(self, number):
        """Registers the check of a claim."""

        def register(function):
            self[f"{self.prefix}-{number:02}"] = function
            return function

        return register


class Found:
    """What was found: words, and the parts that hold or do not."""

    def __init__(self, words, orders=(), sizes=()):
        self.words = words
        self.orders = list(map(bool, orders))
        self.sizes = [abs(found / expected - 1) <= SIZE for found, expected in sizes]

    @property
    def verdict(self):
        """All parts, some of them, or none."""
        parts = self.orders + self.sizes
        return "reproduced" if all(parts) else "partly" if any(parts) else "not"
