"""A parent that expects a sign of life from its child at least every LIMIT seconds; the child computes between two."""
import multiprocessing
import sys
import time

SIGNS, WORK, LIMIT = 40, 0.05, 0.4


def child(pipe):
    for sign in range(SIGNS):
        end = time.monotonic() + WORK
        while time.monotonic() < end:
            sum(range(1000))
        pipe.send(sign)


if __name__ == "__main__":
    ours, its = multiprocessing.Pipe()
    worker = multiprocessing.Process(target=child, args=(its,))
    worker.start()
    for expected in range(SIGNS):
        if not ours.poll(LIMIT):
            worker.kill()
            sys.exit(f"no sign of life after {expected}")
        assert ours.recv() == expected
    worker.join()
    print("ok")
