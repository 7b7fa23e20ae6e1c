"""A wire between client and server that can lose a message: for commits whose fate is in doubt."""

from __future__ import annotations

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class LossyWire:
    """Forwards a server's port. Once armed, the next message one way or the other is lost.

    ``answer``: the request arrives, the server acts, the client never hears of it.
    ``request``: the server hears nothing; its session stays open, in the middle of its transaction.
    Either way the client's connection breaks.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        account = parts.netloc.rpartition("@")[0]
        self.url = parts._replace(netloc=f"{account}@127.0.0.1:{port}").geturl()
        self.lost = threading.Event()
        self._armed: str | None = None
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, way: str) -> None:
        """Lose the next message: the ``answer`` or the ``request``."""
        self._armed = way

    def close(self) -> None:
        """Close all that is still open."""
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self._open += [client, server]
            for source, target, way in ((client, server, "request"), (server, client, "answer")):
                pump = threading.Thread(target=self._pump, args=(source, target, client, way))
                pump.daemon = True
                pump.start()

    def _pump(
        self, source: socket.socket, target: socket.socket, client: socket.socket, way: str
    ) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(65_536):
                if self._armed == way:
                    self._armed = None
                    self.lost.set()
                    client.shutdown(socket.SHUT_RDWR)
                    return
                target.sendall(block)
            if not self.lost.is_set():
                target.shutdown(socket.SHUT_RDWR)
