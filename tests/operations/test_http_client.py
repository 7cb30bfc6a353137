"""HTTP client with real servers: egress policy, kept connections, limits, redirects and errors."""

from __future__ import annotations

import gzip
import shutil
import socket
import ssl
import struct
import subprocess
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, count, repeat
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.servers.site import Request, Response, Site, a_site
from tidings.errors import InputError, TidingsError
from tidings.operations.egress_policy import EgressPolicy, FetchProblem, split_host
from tidings.operations.http_client import HttpClient, HttpLimits, HttpResponse

QUICK = HttpLimits(connect=2.0, read=5.0, total=1.0, keep_alive=60.0, truncate=True)
LIMITS = HttpLimits(size=16_000_000, keep_alive=0.0)
PUBLIC = "127.0.0.2"
NETWORK = EgressPolicy(is_inside=lambda address: address != PUBLIC)
"""One loopback address is public, the others are private."""


@pytest.fixture
def public() -> Iterator[Site]:
    with a_site(PUBLIC) as opened:
        yield opened


def fetch(url: str, limits: HttpLimits = LIMITS, inside_host: str | None = None) -> HttpResponse:
    with HttpClient(limits, NETWORK) as client:
        return client.fetch(url, {}, inside_host)


def error_of(url: str, limits: HttpLimits = LIMITS, inside_host: str | None = None) -> str:
    with pytest.raises(FetchProblem) as caught:
        fetch(url, limits, inside_host)
    return str(caught.value)


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as opened:
        yield opened


@pytest.fixture
def client() -> Iterator[HttpClient]:
    with HttpClient(QUICK, EgressPolicy(is_inside=lambda _: False)) as opened:
        yield opened


def test_connection_is_kept_for_its_host_name_only(site: Site) -> None:
    resolved: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        resolved.append(host)
        return ["127.0.0.1"]

    site.pages["/"] = Response(204)
    with HttpClient(QUICK, EgressPolicy(resolve, lambda _: False)) as client:
        for _ in range(3):
            assert client.request("POST", site.url("/", "one.example"), body=b"x").status == 204
        assert client.request("POST", site.url("/", "two.example"), body=b"x").status == 204
    assert resolved == ["one.example", "two.example"], "a connection is not reused for another name"
    assert [one.headers["host"] for one in site.requests] == [f"one.example:{site.port}"] * 3 + [
        f"two.example:{site.port}"
    ]


def test_old_connection_is_not_reused(site: Site) -> None:
    addresses = ["127.0.0.1"]
    site.pages["/"] = Response(204)
    network = EgressPolicy(lambda host, port: addresses, lambda address: address == "127.0.0.3")
    with HttpClient(HttpLimits(2, 5, 5, keep_alive=0.0), network) as client:
        client.request("POST", site.url("/", "one.example"), body=b"")
        addresses[:] = ["127.0.0.3"]
        with pytest.raises(FetchProblem, match="private network"):
            client.request("POST", site.url("/", "one.example"), body=b"")


def test_connection_closed_while_idle_is_replaced(client: HttpClient) -> None:
    """Servers close idle connections; the request uses a new one."""
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
        assert client.request("POST", url, body=b"x").status == 204
        assert closed.wait(60)
        assert client.request("POST", url, body=b"x").status == 204
        thread.join()


def test_request_with_trickling_body_ends_at_deadline(client: HttpClient, site: Site) -> None:
    """One byte per read would otherwise hold a thread for days."""
    ended = Event()

    def drops() -> Iterator[bytes]:
        while not ended.wait(0.05):
            yield b"x"

    site.pages["/"] = lambda _: Response(200, drops())  # type: ignore[assignment]
    try:
        with pytest.raises(FetchProblem, match="takes too long"):
            client.request("POST", site.url("/"), body=b"x")
    finally:
        ended.set()


def test_request_with_truncation_reads_start_of_body(client: HttpClient, site: Site) -> None:
    site.pages["/"] = Response(200, b"x" * 1_000_000)
    answer = client.request("POST", site.url("/"), body=b"x")
    assert answer.status == 200 and len(answer.body) == 10_000
    assert client.request("POST", site.url("/"), body=b"x").status == 200, (
        "unread data does not leak into the next response"
    )


def test_end_cancels_request_in_progress(site: Site) -> None:
    started, go_on = Event(), Event()

    def never(_: Request) -> Response:
        started.set()
        go_on.wait(60)
        return Response(204)

    site.pages["/"] = never  # type: ignore[assignment]
    with HttpClient(HttpLimits(2, 60, 60), EgressPolicy(is_inside=lambda _: False)) as client:

        def end() -> None:
            started.wait(60)
            client.end()

        thread = Thread(target=end)
        thread.start()
        with pytest.raises(FetchProblem):
            client.request("POST", site.url("/"), body=b"x")
        go_on.set()
        thread.join()


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        (b"", "closed the connection without a response"),
        (b"nonsense\r\n\r\n", "invalid HTTP response"),
        (b"HTTP/1.1 abc\r\n\r\n", "invalid HTTP response"),
    ],
)
def test_request_with_invalid_response_fails(client: HttpClient, sent: bytes, what: str) -> None:
    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(10_000)
            connection.sendall(sent)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=serve, args=(listening,))
        thread.start()
        with pytest.raises(FetchProblem, match=what):
            client.request("POST", f"http://127.0.0.1:{listening.getsockname()[1]}/", body=b"x")
        thread.join()


def test_request_with_refused_connection_fails(client: HttpClient) -> None:
    with pytest.raises(FetchProblem, match="connection refused"):
        client.request("POST", "http://127.0.0.1:1/", body=b"")


def test_fetch_returns_status_headers_and_body(public: Site) -> None:
    public.pages["/feed"] = Response(200, b"hello", {"ETag": '"1"'})
    answer = fetch(public.url("/feed"))
    assert (answer.status, answer.body, answer.headers["etag"], answer.moved) == (200, b"hello", '"1"', None)


def test_fetch_follows_redirects_and_reports_permanent_ones(public: Site) -> None:
    public.pages |= {
        "/old": Response(301, headers={"Location": "/new"}),
        "/new": Response(308, headers={"Location": public.url("/newer")}),
        "/newer": Response(302, headers={"Location": "today"}),
        "/today": Response(200, b"here"),
        "/other": Response(302, headers={"Location": "/old"}),
    }
    answer = fetch(public.url("/old"))
    assert (answer.body, answer.url, answer.moved) == (b"here", public.url("/today"), public.url("/newer"))
    assert fetch(public.url("/other")).moved is None, (
        "a permanent redirect after a temporary one is temporary"
    )


def test_fetch_stops_after_limit_of_redirects(public: Site) -> None:
    numbers = count()
    public.pages["/loop"] = lambda request: Response(302, headers={"Location": f"/loop?{next(numbers)}"})
    assert error_of(public.url("/loop"), replace(LIMITS, redirects=3)).startswith("too many redirects (")
    assert len(public.requests) == 4


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://example.org/", "http://[", "gopher://x"])
def test_fetch_rejects_redirects_to_other_schemes(public: Site, location: str) -> None:
    public.pages["/feed"] = Response(302, headers={"Location": location})
    with pytest.raises((InputError, FetchProblem), match="not a web address"):
        fetch(public.url("/feed"))


def test_fetch_redirected_to_private_address_fails_unsent(public: Site, site: Site) -> None:
    site.pages["/secret"] = Response(200, b"secret")
    public.pages["/feed"] = Response(301, headers={"Location": site.url("/secret")})
    assert "the address is in a private network" in error_of(public.url("/feed"))
    assert site.requests == [], "no request was sent"


def test_fetch_host_with_private_address_fails_unsent(site: Site) -> None:
    network = EgressPolicy(lambda host, port: [PUBLIC, "127.0.0.1"], NETWORK.is_inside)
    with HttpClient(LIMITS, egress=network) as client, pytest.raises(FetchProblem, match="private network"):
        client.fetch(f"http://rebinding.example:{site.port}/", {})
    assert site.requests == []


def test_inside_host_allows_redirects_to_itself_only(site: Site) -> None:
    with a_site("127.0.0.3") as other:
        site.pages |= {
            "/feed": Response(302, headers={"Location": "/there"}),
            "/there": Response(200, b"here"),
            "/away": Response(302, headers={"Location": other.url("/")}),
        }
        assert "private network" in error_of(site.url("/feed"))
        assert fetch(site.url("/feed"), inside_host="127.0.0.1").body == b"here"
        assert "private network" in error_of(site.url("/away"), inside_host="127.0.0.1")
        assert other.requests == []


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "file:///etc/passwd", "http://", "http://[", "http://a:b", "http://a b/", "x://a"],
)
def test_split_host_rejects_invalid_urls(url: str) -> None:
    with pytest.raises(InputError, match="not a web address"):
        split_host(url)


PASSWORDS = [
    "http://ann:secret@example.org/",
    "https://secret@example.org/",
    "ftp://ann:secret@example.org/",
    "http://ann:secret@example.org:port/",
    "http://ann:se/cret-secret@example.org/",
    "http://ann:secret@[",
    "http://ann:secret@",
    "http://ann: secret@example.org/",
]


@pytest.mark.parametrize("url", PASSWORDS)
def test_split_host_with_password_does_not_repeat_it(url: str) -> None:
    with pytest.raises(InputError) as caught:
        split_host(url)
    assert "secret" not in str(caught.value) + str(caught.value.facts())


@pytest.mark.parametrize("url", PASSWORDS)
def test_fetch_redirected_to_url_with_password_does_not_repeat_it(public: Site, url: str) -> None:
    """Problems of a feed are listed to all users with access."""
    public.pages["/feed"] = Response(302, headers={"Location": url})
    with pytest.raises(TidingsError) as caught:
        fetch(public.url("/feed"))
    assert "secret" not in str(caught.value) + str(caught.value.facts())
    assert len(public.requests) == 1


def test_fetch_ignores_passwords_in_netrc(
    public: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text(f"machine {PUBLIC} login ann password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    public.pages["/feed"] = Response()
    fetch(public.url("/feed"))
    assert "authorization" not in public.requests[0].headers


def test_fetch_rejects_body_over_limit(public: Site) -> None:
    public.pages["/exact"] = Response(200, b"x" * 1_000)
    public.pages["/endless"] = lambda request: Response(200, repeat(b"x" * 1_000))
    assert len(fetch(public.url("/exact"), replace(LIMITS, size=1_000)).body) == 1_000
    endless = public.url("/endless")
    message = error_of(endless, replace(LIMITS, size=999))
    assert message == f"the response is too large ({endless}); accepted: 999 bytes"


def test_fetch_decompresses_up_to_limit(public: Site) -> None:
    packed = gzip.compress(b"x" * 10_000_000)
    public.pages["/bomb"] = Response(200, packed, {"Content-Encoding": "gzip"})
    public.pages["/cut"] = Response(200, packed[:-20], {"Content-Encoding": "gzip"})
    public.pages["/strange"] = Response(200, zlib.compress(b"x"), {"Content-Encoding": "deflate"})
    public.pages["/broken"] = Response(200, b"no gzip", {"Content-Encoding": "gzip"})
    assert fetch(public.url("/bomb")).body == b"x" * 10_000_000
    assert "the response is too large" in error_of(public.url("/bomb"), replace(LIMITS, size=9_999_999))
    assert "cut short" in error_of(public.url("/cut"))
    assert "received deflate" in error_of(public.url("/strange"))
    assert "invalid HTTP response" in error_of(public.url("/broken"))


def test_fetch_data_after_compressed_body_is_rejected(public: Site) -> None:
    """zlib keeps such data, and copies it with each further piece."""
    packed = gzip.compress(b"x")
    public.pages["/more"] = lambda request: Response(
        200, chain([packed], repeat(b"y" * 1_000)), {"Content-Encoding": "gzip"}
    )
    assert "unexpected data after the compressed response" in error_of(
        public.url("/more"), replace(LIMITS, total=5)
    )


def test_fetch_with_trickling_body_closes_connection(public: Site) -> None:
    """Each byte arrives in time, the whole body does not. The server stops when the connection is closed."""
    closed = Event()

    def drops() -> Iterator[bytes]:
        try:
            while not closed.wait(0.01):
                yield b"x"
        finally:
            closed.set()

    public.pages["/slow"] = lambda request: Response(200, drops())
    assert "takes too long" in error_of(public.url("/slow"), replace(LIMITS, total=0.1))
    assert closed.wait(60)


def test_fetch_with_trickling_headers_ends_at_deadline() -> None:
    with socket.create_server((PUBLIC, 0)) as server, ThreadPoolExecutor(1) as pool:
        url = f"http://{PUBLIC}:{server.getsockname()[1]}/"
        dripping = pool.submit(_drip_headers, server)
        assert "takes too long" in error_of(url, replace(LIMITS, total=0.1))
        assert dripping.result(60) == "connection closed"


def _drip_headers(server: socket.socket) -> str:
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        try:
            while not Event().wait(0.01):
                connection.sendall(b"x")
        except OSError:
            return "connection closed"
    return "unreachable"


def test_fetch_without_response_times_out(public: Site) -> None:
    ended = Event()

    def silent(request: Request) -> Response:
        ended.wait(60)
        return Response()

    public.pages["/silent"] = silent
    url = public.url("/silent")
    assert (
        error_of(url, replace(LIMITS, read=0.05)) == f"the response timed out ({url}); accepted: 0.05 seconds"
    )
    ended.set()


def test_fetch_with_refused_connection_hints_at_port() -> None:
    with a_site(PUBLIC) as closed:
        url = closed.url()
    assert error_of(url) == (f"connection refused ({url}); is the server running, on this port?")


@pytest.mark.parametrize("linger", [b"", struct.pack("ii", 1, 0)], ids=["ended", "reset"])
def test_fetch_with_closed_connection_fails(linger: bytes) -> None:
    with socket.create_server((PUBLIC, 0)) as server, ThreadPoolExecutor(1) as pool:
        url = f"http://{PUBLIC}:{server.getsockname()[1]}/"
        ending = pool.submit(_hang_up, server, linger)
        assert error_of(url) == f"the server closed the connection without a response ({url})"
        ending.result(60)


def _hang_up(server: socket.socket, linger: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(100_000)
        if linger:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


def test_fetch_unknown_host_fails_without_errno() -> None:
    with HttpClient() as client, pytest.raises(FetchProblem, match="host") as caught:
        client.fetch("http://nowhere.invalid/", {})
    assert "Errno" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (socket.gaierror(socket.EAI_NONAME, "x"), "there is no host of this name (http://a.example/)"),
        (
            socket.gaierror(socket.EAI_AGAIN, "x"),
            "the host's name cannot be resolved at the moment (http://a.example/)",
        ),
        (UnicodeError("x"), "there is no host of this name (http://a.example/)"),
    ],
)
def test_fetch_unresolved_name_states_reason(error: Exception, message: str) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise error

    with HttpClient(LIMITS, egress=EgressPolicy(resolve)) as client, pytest.raises(FetchProblem) as caught:
        client.fetch("http://a.example/", {})
    assert str(caught.value).startswith(message)


def test_fetch_plain_http_over_tls_hints_at_http(public: Site) -> None:
    url = public.url("/feed").replace("http:", "https:")
    message = error_of(url)
    assert message.startswith(f"the TLS handshake failed ({url}); received ")
    assert message.endswith("does it answer at http:// instead?")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for news.example, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on the PATH to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    path, key = folder / "made.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", path]
    command += ["-days", "2", "-subj", "/CN=news.example", "-addext", "subjectAltName=DNS:news.example"]
    subprocess.run(command, check=True, capture_output=True)
    return path, key


def test_fetch_checks_certificate_for_host_name(
    certificate: tuple[Path, Path],
) -> None:
    """Both names resolve to the same machine, in turn: a connection for the first must not serve the second."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    network = EgressPolicy(lambda host, port: [PUBLIC], NETWORK.is_inside)
    with a_site(PUBLIC, serving) as site, HttpClient(LIMITS, egress=network, tls=trusting) as client:
        site.pages["/feed"] = Response(200, b"hello")
        assert client.fetch(f"https://news.example:{site.port}/feed", {}).body == b"hello"
        with pytest.raises(FetchProblem, match=r"certificate is not trusted .*; received Hostname mismatch"):
            client.fetch(f"https://other.example:{site.port}/feed", {})
        assert len(site.requests) == 1
    with a_site(PUBLIC, serving) as site, HttpClient(LIMITS, egress=network) as client:
        with pytest.raises(FetchProblem, match=r"certificate is not trusted .*; received self-signed"):
            client.fetch(f"https://news.example:{site.port}/feed", {})
        assert site.requests == [], "no trusted authority has signed it"


def test_fetch_redirected_to_overlong_url_fails(public: Site) -> None:
    public.pages["/feed"] = Response(302, headers={"Location": public.url("/" + "x" * 65_520)})
    assert "invalid HTTP response" in error_of(public.url("/feed"))


@pytest.fixture(scope="module")
def unreachable() -> Iterator[HttpClient]:
    """A client for which every host resolves to an address without a listener."""
    with HttpClient(
        replace(LIMITS, read=5), EgressPolicy(lambda host, port: [PUBLIC], lambda address: False)
    ) as opened:
        yield opened


@given(
    st.sampled_from(["", "http://", "https://", "http://127.0.0.1", "http://a.example:1"]),
    st.text(alphabet="[]:/@?#%.x1é \\\x00\ud800-_~;=&+İß。٠", max_size=20),
)
def test_fetch_any_text_raises_tidings_error(unreachable: HttpClient, beginning: str, rest: str) -> None:
    with pytest.raises(TidingsError):
        unreachable.fetch(beginning + rest, {})


def test_stream_reads_long_body_in_chunks(public: Site) -> None:
    public.pages["/log"] = lambda request: Response(200, repeat(b"x" * 1_000, 500))
    small = HttpClient(replace(LIMITS, size=10), NETWORK)
    with small as client, client.stream("GET", public.url("/log")) as response:
        assert response.status == 200 and sum(map(len, response.chunks())) == 500_000


def test_stream_body_shorter_than_content_length_fails() -> None:
    with socket.create_server((PUBLIC, 0)) as server, ThreadPoolExecutor(1) as pool:
        url = f"http://{PUBLIC}:{server.getsockname()[1]}/"
        serving = pool.submit(_serve_once, server, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")
        assert error_of(url) == f"the response was cut short ({url})"
        serving.result(60)


def test_headers_of_same_name_are_joined_and_decoded_as_utf_8() -> None:
    sent = "HTTP/1.1 200 OK\r\nLink: <a>; rel=hub\r\nLink: <é>; rel=self\r\nContent-Length: 0\r\n\r\n"
    with socket.create_server((PUBLIC, 0)) as server, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(_serve_once, server, sent.encode())
        response = fetch(f"http://{PUBLIC}:{server.getsockname()[1]}/")
        assert response.headers["link"] == "<a>; rel=hub, <é>; rel=self"
        serving.result(60)


def _serve_once(server: socket.socket, sent: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(100_000)
        connection.sendall(sent)


def test_connection_falls_back_to_next_address(public: Site) -> None:
    public.pages["/"] = Response(204)
    network = EgressPolicy(lambda host, port: ["127.0.0.3", PUBLIC], lambda _: False)
    with HttpClient(LIMITS, network) as client:
        assert client.fetch(public.url("/", "two.example")).status == 204


def test_kept_connection_to_private_host_is_not_used_without_permission(site: Site) -> None:
    site.pages["/"] = Response(204)
    with HttpClient(QUICK, NETWORK) as client:
        assert client.request("GET", site.url("/"), inside_host="127.0.0.1").status == 204
        with pytest.raises(FetchProblem, match="private network"):
            client.request("GET", site.url("/"))


def test_ended_client_rejects_further_requests(public: Site) -> None:
    with HttpClient(LIMITS, NETWORK) as client:
        client.end()
        with pytest.raises(FetchProblem, match="the request was cancelled"):
            client.fetch(public.url("/"))


def test_url_with_characters_beyond_ascii_is_percent_encoded(public: Site) -> None:
    public.pages["/f%C3%A9ed?q=%E2%82%AC"] = public.pages["/f%C3%A9ed"] = Response(200, b"here")
    assert fetch(public.url("/féed?q=€")).body == b"here"
