"""A proxy to a server whose connections can be cut, at a commit or at any moment."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from postgres_servers import HOST


class Link:
    """A connection through a proxy: both of its ends."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.ends = client, server
        self.commits: set[bytes] = set()  # the names of prepared statements that commit
        self.answer: bytes | None = None  # what was kept from the client, once that has begun

    def cut(self) -> None:
        for end in self.ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Proxy:
    """A way to a server, which can be cut at a commit, and led to another server."""

    def __init__(self, port: int | None) -> None:
        self.target = port
        self.cuts: list[str] = []
        """The cut of a connection at a COMMIT, each once: `before` it is forwarded, `after` it was answered, or `not`."""
        self.stays_down = False
        """True: refuse all connections after a cut."""
        self.down = False
        self._links: list[Link] = []
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.down = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()
        for thread in self._threads:
            thread.join(60)

    def cut_all(self) -> None:
        for link in self._links:
            link.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self.down:
                    raise OSError
                server = socket.create_connection((HOST, self.target or 0))
            except OSError:
                client.close()
                continue
            link = Link(client, server)
            self._links.append(link)
            thread = threading.Thread(target=self._carry_both, args=(link,))
            self._threads.append(thread)
            thread.start()

    def _carry_both(self, link: Link) -> None:
        client, server = link.ends
        back = threading.Thread(target=self._carry, args=(link, server, client, self._comes_back))
        back.start()
        self._carry(link, client, server, self._goes)
        back.join()
        client.close()
        server.close()

    def _carry(
        self, link: Link, source: socket.socket, sink: socket.socket, passes: Callable[[Link, bytes], bool]
    ) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if passes(link, data):
                    sink.sendall(data)
        link.cut()

    def _goes(self, link: Link, data: bytes) -> bool:
        link.commits |= set(re.findall(rb"P[^P]{4}(_pg3_\w+)\0COMMIT\0", data, re.DOTALL))
        commits = b"COMMIT\0" in data or any(b"\0" + name + b"\0" in data for name in link.commits)
        if commits and self.cuts:
            how = self.cuts.pop(0)
            if how == "not":
                return True
            self.down = self.stays_down
            if how == "before":
                link.cut()
                return False
            link.answer = b""
        return True

    def _comes_back(self, link: Link, data: bytes) -> bool:
        if link.answer is None:
            return True
        link.answer += data
        if b"COMMIT\0" in link.answer:
            link.cut()
        return False
