"""A connection between a browser and a server that can be cut, as a cable can."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit


CHUNK_BYTES = 65_536


class Cuttable:
    """Passes bytes on between whoever connects and a server.

    Args:
        address: The server, as `http://host:port`.
    """

    def __init__(self, address: str) -> None:
        there = urlsplit(address)
        self._there = (there.hostname or "", there.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._whole = threading.Event()
        self._whole.set()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads[0].start()

    def cut(self) -> None:
        """Break what is connected, and whatever connects from now on."""
        self._whole.clear()
        _shut(*self._sockets)

    def mend(self) -> None:
        """Let connections through again."""
        self._whole.set()

    def close(self) -> None:
        """Listen no more."""
        _shut(self._listener)
        self._threads[0].join()
        self.cut()
        for thread in self._threads:
            thread.join()
        for one in (self._listener, *self._sockets):
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self._whole.is_set():
                near.close()
                continue
            far = socket.create_connection(self._there)
            self._sockets += [near, far]
            for pair in ((near, far), (far, near)):
                thread = threading.Thread(target=_pass_on, args=pair, daemon=True)
                self._threads.append(thread)
                thread.start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            sink.sendall(data)
    _shut(source, sink)


def _shut(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@contextmanager
def cuttable(address: str) -> Iterator[Cuttable]:
    """A connection to a server that can be cut."""
    made = Cuttable(address)
    try:
        yield made
    finally:
        made.close()
