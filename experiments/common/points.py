"""Changes of a setting that are swept."""


def times(factor, *keys):
    """A change of a machine: these constants are so many times as large."""

    def change(machine):
        for key in keys:
            found = machine[key]
            machine[key] = [x * factor for x in found] if isinstance(found, list) else found * factor

    return change
