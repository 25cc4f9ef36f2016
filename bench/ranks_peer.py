"""The peer of ranks: processes that are sent pickled NumPy arrays over multiprocessing connections,
the way NVFlare's multi-process executor did it (ports, one connection for execution, rank by rank;
rank 0 replies).

    ranks_peer.py payload RANKS MIB ROUNDS     touch every page; the third and later
    ranks_peer.py tiny RANKS COUNT             an empty task, and the replies of all of them collected

Prints one JSON object of seconds.
"""
import json
import multiprocessing
import multiprocessing.connection
import socket
import statistics
import sys
import time

import numpy

AUTHKEY = b"client process secret password"


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def rank(number, port, all_reply):
    connection = multiprocessing.connection.Listener(("localhost", port), authkey=AUTHKEY).accept()
    while True:
        command = connection.recv()
        if command["command"] == "close":
            return
        data = command["shareable"].get("weights")
        result = float(data[::1024].sum()) if data is not None else 0.0
        if number == 0 or all_reply:
            connection.send({"shareable": {"sum": result}, "context": {}})


def connect(port):
    while True:
        try:
            return multiprocessing.connection.Client(("localhost", port), authkey=AUTHKEY)
        except ConnectionRefusedError:
            time.sleep(0.01)


def main():
    what, ranks, *rest = sys.argv[1:]
    ranks, all_reply = int(ranks), what == "tiny"
    multiprocessing.set_start_method("spawn")
    ports = [free_port() for _ in range(ranks)]
    processes = [multiprocessing.Process(target=rank, args=(i, port, all_reply), daemon=True)
                 for i, port in enumerate(ports)]
    for process in processes:
        process.start()
    connections = [connect(port) for port in ports]
    shareable = {"rate": 0.1}
    if what == "payload":
        shareable["weights"] = numpy.ones((int(rest[0]) << 20) // 4, numpy.float32)
        rounds = int(rest[1])
    else:
        rounds = int(rest[0])
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        for connection in connections:
            connection.send({"command": "execute", "task": "touch", "shareable": shareable,
                             "context": {"RANK_NUMBER": 0}})
        for connection in connections if all_reply else connections[:1]:
            connection.recv()
        times.append(time.perf_counter() - began)
    for connection in connections:
        connection.send({"command": "close"})
    for process in processes:
        process.join()
    print(json.dumps({"peer": statistics.median(times[2:])}))


if __name__ == "__main__":
    main()
