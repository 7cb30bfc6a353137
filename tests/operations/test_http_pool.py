"""Posting over connections that are kept: to the address that was looked at, within limits of time and size."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from tests.support.servers.site import Request, Response, Site, a_site
from tidings.operations.egress_policy import EgressPolicy, FetchProblem
from tidings.operations.http_pool import HttpPool, Timeouts

QUICK = Timeouts(connect=2.0, read=5.0, total=1.0, kept=60.0)


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as made:
        yield made


@pytest.fixture
def poster() -> Iterator[HttpPool]:
    with HttpPool(QUICK, EgressPolicy(is_inside=lambda _: False)) as made:
        yield made


def test_connections_are_kept_for_a_name(site: Site) -> None:
    looked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        looked.append(host)
        return ["127.0.0.1"]

    site.pages["/"] = Response(204)
    with HttpPool(QUICK, EgressPolicy(resolve, lambda _: False)) as poster:
        for _ in range(3):
            assert poster.post(site.url("/", "one.example"), {}, b"x").status == 204
        assert poster.post(site.url("/", "two.example"), {}, b"x").status == 204
    assert looked == ["one.example", "two.example"], "a connection is not for another name"
    assert [one.headers["host"] for one in site.requests] == [f"one.example:{site.port}"] * 3 + [
        f"two.example:{site.port}"
    ]


def test_a_connection_that_is_old_is_made_anew(site: Site) -> None:
    leads = ["127.0.0.1"]
    site.pages["/"] = Response(204)
    network = EgressPolicy(lambda host, port: leads, lambda address: address == "127.0.0.3")
    with HttpPool(Timeouts(2, 5, 5, kept=0.0), network) as poster:
        poster.post(site.url("/", "one.example"), {}, b"")
        leads[:] = ["127.0.0.3"]
        with pytest.raises(FetchProblem, match="private network"):
            poster.post(site.url("/", "one.example"), {}, b"")


def test_a_connection_that_the_server_closed_meanwhile(poster: HttpPool) -> None:
    """Servers close what waits too long: the request goes over a new one."""
    closed = Event()

    def serve(listening: socket.socket) -> None:
        for _ in range(2):
            connection, _ = listening.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            closed.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=serve, args=(listening,))
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        assert poster.post(url, {}, b"x").status == 204
        assert closed.wait(60)
        assert poster.post(url, {}, b"x").status == 204
        thread.join()


def test_an_answer_in_drops_ends(poster: HttpPool, site: Site) -> None:
    """One byte in each read would do to hold a thread for days."""
    ended = Event()

    def drops() -> Iterator[bytes]:
        while not ended.wait(0.05):
            yield b"x"

    site.pages["/"] = lambda _: Response(200, drops())  # type: ignore[assignment]
    try:
        with pytest.raises(FetchProblem, match="takes too long"):
            poster.post(site.url("/"), {}, b"x")
    finally:
        ended.set()


def test_only_the_beginning_of_an_answer_is_read(poster: HttpPool, site: Site) -> None:
    site.pages["/"] = Response(200, b"x" * 1_000_000)
    answer = poster.post(site.url("/"), {}, b"x")
    assert answer.status == 200 and len(answer.body) == 10_000
    assert poster.post(site.url("/"), {}, b"x").status == 200, "what was left unread is not in the next"


def test_ending_what_is_under_way(site: Site) -> None:
    begun, go_on = Event(), Event()

    def never(_: Request) -> Response:
        begun.set()
        go_on.wait(60)
        return Response(204)

    site.pages["/"] = never  # type: ignore[assignment]
    with HttpPool(Timeouts(2, 60, 60), EgressPolicy(is_inside=lambda _: False)) as poster:

        def end() -> None:
            begun.wait(60)
            poster.end()

        thread = Thread(target=end)
        thread.start()
        with pytest.raises(FetchProblem):
            poster.post(site.url("/"), {}, b"x")
        go_on.set()
        thread.join()


@pytest.mark.parametrize(
    ("said", "what"),
    [
        (b"", "ended the connection without an answer"),
        (b"nonsense\r\n\r\n", "no answer that can be read"),
        (b"HTTP/1.1 abc\r\n\r\n", "no answer that can be read"),
    ],
)
def test_answers_that_are_none(poster: HttpPool, said: bytes, what: str) -> None:
    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(10_000)
            connection.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=serve, args=(listening,))
        thread.start()
        with pytest.raises(FetchProblem, match=what):
            poster.post(f"http://127.0.0.1:{listening.getsockname()[1]}/", {}, b"x")
        thread.join()


def test_nobody_listens(poster: HttpPool) -> None:
    with pytest.raises(FetchProblem, match="nothing listens there"):
        poster.post("http://127.0.0.1:1/", {}, b"")
