"""A malleable program in Python: it prints how many threads each of its regions had, and a sum that does not depend on that.

cosched brings the library; without it there is none, and every request is met.
"""

import ctypes
from concurrent.futures import ThreadPoolExecutor

_hook = ctypes.CDLL(None)


def region(requested):
    """How many threads the next parallel region may have, of as many as requested."""
    return _hook.cosched_region(requested) if hasattr(_hook, "cosched_region") else requested


def progress(ticks):
    """Tells that the program has come so many ticks further."""
    if hasattr(_hook, "cosched_progress"):
        _hook.cosched_progress(ctypes.c_uint64(ticks))


def main():
    total = 0
    for _ in range(3):
        threads = region(4)
        print(threads, end=" ")
        parts = [range(1 + part, 1001, threads) for part in range(threads)]
        with ThreadPoolExecutor(threads) as pool:
            total += sum(pool.map(sum, parts))
        progress(1)
    print("sum", total)


main()
