"""Damaged frames reach the control socket of a run: it answers well-formed ones all the time, and its tasks finish."""
import contextlib
import json
import socket
import sqlite3
import struct

from scenario import Scenario
from yard import wait_until

PREFIX = struct.Struct("<4sBBHQQIIIIQ")
HELLO, REQUEST = 1, 3
NOBODY = {"group": "g", "id": "nobody"}
REQUESTS = [{"do": "ping"}, {"do": "kill", **NOBODY}, {"do": "retry", **NOBODY, "memory_bytes": 1}, {"do": "priority", **NOBODY, "priority": 3},
            {"do": "hold", **NOBODY}, {"do": "submit", "job_file": "x.yaml", "current_directory": "/", "command_line": "x", "settings": []}]


def frame(kind, fields, buffers=()):
    text = json.dumps(fields).encode()
    return PREFIX.pack(b"TYRD", 1, kind, 0, 0, 1, 0, len(text), len(buffers), 0, sum(map(len, buffers))) + b"".join(
        struct.pack("<Q", len(buffer)) for buffer in buffers) + text + b"".join(buffers)


class Frames(Scenario):
    seeds = 20

    def play(self):
        self.task_job(12, longest=0.2, more=self.gate())
        yard = self.execute("job.yaml", "--run-dir", self.run_dir)
        path = wait_until("the socket", self.socket_path)
        for number in range(1000):
            self.send_damaged(path)
            if number % 40 == 39:
                wait_until("an answer", lambda: self.is_answered(path))
        self.open_gate()
        self.judge(yard.wait(120), self.text("output"))
        self.count_left()
        self.count_lost()

    def socket_path(self):
        with contextlib.suppress(sqlite3.Error, TypeError), contextlib.closing(
                sqlite3.connect(f"file:{self.directory / self.run_dir}/journal.db?mode=ro", uri=True)) as journal:
            return journal.execute("SELECT socket_path FROM executions ORDER BY number DESC LIMIT 1").fetchone()[0]

    def damaged(self):
        hello = frame(HELLO, {"role": self.chance.choice(("control", "control", "task", "helper", "rank")), "version": 1, "token": "0" * 32})
        request = self.chance.choice(REQUESTS)
        buffers = [b"groups: [{tasks: [{command: 'true", b"A=1\0"] if request["do"] == "submit" else []
        whole, which = [hello, frame(REQUEST, request, buffers)], self.chance.randrange(2)
        data = bytearray(whole[which])
        how = self.chance.choice(("bytes", "number", "cut", "random", "JSON"))
        if how == "bytes":
            for _ in range(self.chance.choice((1, 1, 5, 40))):
                data[self.chance.randrange(len(data))] = self.chance.randrange(256)
        elif how == "number":  # A number of the prefix.
            at, size = self.chance.choice(((4, 1), (5, 1), (6, 2), (8, 8), (16, 8), (24, 4), (28, 4), (32, 4), (36, 4), (40, 8)))
            data[at:at + size] = self.chance.choice((0, 1, 2, 64, 65, 1 << 16, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)).to_bytes(8, "little")[:size]
        elif how == "cut":
            del data[self.chance.randrange(len(data)):]
        elif how == "random":
            data = self.chance.randbytes(self.chance.randrange(1, 5000))
        else:  # Deep, long or of wrong types.
            text = self.chance.choice((b"[" * 5000, b'{"do":' * 300, b'{"do":{"a":1},"group":[],"id":7}', b'{"do":"kill","group":"' + b"\xff\0" * 900,
                                       b'{"role":7,"version":"1"}', b'{"do":"submit","settings":' + b"[1," * 900))
            data = PREFIX.pack(b"TYRD", 1, (HELLO, REQUEST)[which], 0, 0, 1, 0, len(text), 0, 0, 0) + text
        whole[which] = data
        return b"".join(whole)

    def send_damaged(self, path):
        data = self.damaged()
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(path)
            cut = self.chance.randrange(len(data) + 1)
            connection.sendall(data[:cut])
            connection.sendall(data[cut:])
            if self.chance.random() < 0.3:
                connection.shutdown(socket.SHUT_WR)
            if self.chance.random() < 0.7:
                connection.settimeout(0.05)
                connection.recv(100)

    def is_answered(self, path):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(path)
            connection.sendall(frame(HELLO, {"role": "control", "version": 1}) + frame(REQUEST, {"do": "ping"}))
            received = b""
            while b'"done"' not in received and (piece := connection.recv(4096)):
                received += piece
            return b'"done"' in received
