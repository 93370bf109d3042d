#!/usr/bin/env python3
"""mariadb.py: a database server of our own for the lock bench, with sysbench as its clients.

Server and clients are two programs of one workload, as if a user ran both under cosched. Both start at once. The client
waits until the server answers, has a fixed number of transactions done, and ends the server. What counts is the time
that sysbench tells, from its first transaction to its last, so that starting and ending the server is no part of it.

The data is made anew for each bench, in a folder of ours; the distribution's service is neither needed nor touched
(Debian: mariadb-server-core has the program without the service). Nothing is made durable, so that locks decide and
not the disk.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from lib.runner import beside

# What `make bench-lock` installs for it.
NEEDED = ["mariadbd", "mariadb-install-db", "sysbench"]
TABLES, ROWS = 4, 10_000
# In the folder of the data, where server and clients run: a socket's path may have 107 bytes only.
SOCKET, PID_FILE = "server.sock", "server.pid"
SECONDS_TO_START = 60


def found(program):
    """Where the program is; servers lie in a folder that is in few users' PATH."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    return [program for program in NEEDED if not found(program)]


def server(data):
    """The command of the server, which runs in the folder of its data."""
    return [found("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={SOCKET}", f"--pid-file={PID_FILE}",
            *as_root(), "--skip-networking", "--skip-log-bin", "--performance-schema=OFF", "--max-connections=2000",
            "--innodb-buffer-pool-size=128M", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF",
            "--innodb-flush-method=nosync"]


def as_root():
    """The server runs as root only where it is told to."""
    return ["--user=root"] if os.geteuid() == 0 else []


def client(threads, transactions):
    """The command of the clients, to be run in the folder of the server's data."""
    return [sys.executable, str(pathlib.Path(__file__).resolve()), str(threads), str(transactions)]


def sysbench(*words):
    return [found("sysbench"), "oltp_read_write", f"--mysql-socket={SOCKET}", "--mysql-user=root", "--mysql-db=bench",
            f"--tables={TABLES}", f"--table-size={ROWS}", *words]


def prepare(data):
    """Makes a server's data, with the tables that sysbench needs."""
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    run([found("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--skip-test-db",
         "--auth-root-authentication-method=normal", *as_root()], data)
    start = data / "start.sql"
    start.write_text("CREATE DATABASE bench;\n")
    command = [*server(data), f"--init-file={start}"]
    keywords = {"cwd": data, "start_new_session": True, "stderr": subprocess.DEVNULL}
    with beside(command, signal.SIGTERM, **keywords):
        wait_for_server(data)
        run(sysbench("prepare"), data)


def run(command, folder):
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"bench: {command[0]} failed: {done.stdout.strip()[-500:]}")


def wait_for_server(data):
    """Returns when it answers."""
    folder = os.open(data, os.O_PATH)
    try:
        for _ in range(SECONDS_TO_START * 50):
            with socket.socket(socket.AF_UNIX) as line:
                if line.connect_ex(f"/proc/self/fd/{folder}/{SOCKET}") == 0 and line.recv(1):
                    return
            time.sleep(0.02)
    finally:
        os.close(folder)
    sys.exit(f"bench: the server did not answer within {SECONDS_TO_START} s; see {data}")


def end_server():
    """Ends the server with its data here; no other one, whatever the file with its number says."""
    process = int(pathlib.Path(PID_FILE).read_text())
    handle = os.pidfd_open(process)
    if os.path.samefile(f"/proc/{process}/cwd", "."):
        signal.pidfd_send_signal(handle, signal.SIGTERM)


def seconds(printed):
    """How long the transactions took, by what sysbench printed."""
    match = re.search(r"^ *total time: +([0-9.]+)s$", printed, re.MULTILINE)
    return float(match[1]) if match else None


def main():
    threads, transactions = sys.argv[1:]
    wait_for_server(pathlib.Path.cwd())
    try:
        done = subprocess.run(sysbench(f"--threads={threads}", f"--events={transactions}", "--time=0", "run"))
    finally:
        end_server()
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
