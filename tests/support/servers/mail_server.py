"""A mail server on loopback that accepts or rejects all mails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread


class Post(ThreadingTCPServer):
    """A server with the part of SMTP that delivers a mail."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mails: list[EmailMessage] = []
        self.full = False

    @property
    def target(self) -> str:
        return f"mailto://127.0.0.1:{self.server_address[1]}/?from=tidings@example.org&to=ana@example.org"


class _Handler(StreamRequestHandler):
    server: Post

    def handle(self) -> None:
        self._reply("220 here")
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word == b"DATA":
                self._data()
            elif word == b"QUIT":
                self._reply("221 bye")
                return
            elif word == b"RCPT" and self.server.full:
                self._reply("452 no room")
            else:
                self._reply("250 yes")

    def _data(self) -> None:
        self._reply("354 go on")
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line)
        mail = message_from_bytes(b"".join(lines), policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.server.mails.append(mail)
        self._reply("250 taken")

    def _reply(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def a_post() -> Iterator[Post]:
    with Post() as post:
        thread = Thread(target=post.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield post
        finally:
            post.shutdown()
            thread.join()
