"""Short steps of work, each of which fails when it takes more than LIMIT seconds, beside a thread that sleeps."""
import sys
import threading
import time

STEPS, LIMIT = 400, 0.2

if __name__ == "__main__":
    over = threading.Event()
    beside = threading.Thread(target=over.wait)
    beside.start()
    late = None
    for step in range(STEPS):
        begin = time.monotonic()
        words = sorted(str(number) for number in range(2000))
        assert words[0] == "0"
        took = time.monotonic() - begin
        if took > LIMIT:
            late = f"step {step} took {took:.3f} s"
            break
    over.set()
    beside.join()
    if late:
        sys.exit(late)
    print("ok")
