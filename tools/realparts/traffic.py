"""Sends or takes bytes over one TCP connection at a stated pace, for a stated time at most.

Run as a program by hosts, once on each end of a host's link; standard library only."""

import socket
import sys
import time

CHUNK = b"\0" * 65_536
PACE_SECONDS = 0.01
CONNECT_SECONDS = 10.0


def main(arguments: list[str]) -> None:
    """`listen|dial ADDRESS PORT send|take BYTES_PER_SECOND SECONDS`"""
    manner, address, port, action, bytes_per_second, seconds = arguments
    if manner == "listen":
        connection = _accept(address, int(port))
    else:
        connection = socket.create_connection((address, int(port)), timeout=CONNECT_SECONDS)
    print("flowing", flush=True)
    with connection:
        connection.settimeout(float(seconds))
        try:
            if action == "send":
                moved = _send(connection, int(bytes_per_second), float(seconds))
            else:
                moved = _take(connection)
        except OSError as end:
            print(f"ended by {end}", flush=True)
        else:
            print(f"{moved} bytes", flush=True)


def _accept(address: str, port: int) -> socket.socket:
    with socket.create_server((address, port)) as server:
        server.settimeout(CONNECT_SECONDS)
        print("listening", flush=True)
        connection, _ = server.accept()
        return connection


def _send(connection: socket.socket, bytes_per_second: int, seconds: float) -> int:
    begin = time.monotonic()
    sent = 0
    while (elapsed := time.monotonic() - begin) < seconds:
        due = int(bytes_per_second * elapsed) - sent
        while due > 0 and time.monotonic() - begin < seconds:
            piece = CHUNK[:due]
            connection.sendall(piece)
            sent += len(piece)
            due -= len(piece)
        time.sleep(PACE_SECONDS)
    return sent


def _take(connection: socket.socket) -> int:
    taken = 0
    while piece := connection.recv(len(CHUNK)):
        taken += len(piece)
    return taken


if __name__ == "__main__":
    main(sys.argv[1:])
