"""Fetching against real servers: what is too large, too slow, too far away or not for us."""

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
from itertools import chain, count, repeat
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event, Lock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.servers.site import Request, Response, Site, a_site
from tidings.errors import InputError, TidingsError
from tidings.feeds.fetcher import Fetcher, FetchPolicy
from tidings.operations.egress_policy import EgressPolicy, FetchProblem, split_host

PUBLIC = "127.0.0.2"
NETWORK = EgressPolicy(is_inside=lambda address: address != PUBLIC)
"""One address of loopback plays the public web, the others are inside, as they are."""


@pytest.fixture
def public() -> Iterator[Site]:
    with a_site(PUBLIC) as made:
        yield made


def fetch(url: str, manners: FetchPolicy | None = None, inside_host: str | None = None):  # type: ignore[no-untyped-def]
    with Fetcher(manners, NETWORK) as fetcher:
        return fetcher.fetch(url, {}, inside_host)


def refusal(url: str, manners: FetchPolicy | None = None, inside_host: str | None = None) -> str:
    with pytest.raises(FetchProblem) as caught:
        fetch(url, manners, inside_host)
    return str(caught.value)


def test_an_answer(public: Site) -> None:
    public.pages["/feed"] = Response(200, b"hello", {"ETag": '"1"'})
    answer = fetch(public.url("/feed"))
    assert (answer.status, answer.body, answer.headers["etag"], answer.moved) == (200, b"hello", '"1"', None)


def test_we_say_who_we_are_and_which_host_is_meant(public: Site) -> None:
    public.pages["/feed"] = Response()
    network = EgressPolicy(lambda host, port: [PUBLIC], NETWORK.is_inside)
    with Fetcher(FetchPolicy(contact="https://example.org/bot"), network) as fetcher:
        fetcher.fetch(f"http://news.example:{public.port}/feed#part", {"if-none-match": '"1"'})
    [request] = public.requests
    assert request.headers["user-agent"].startswith("Tidings/")
    assert "https://example.org/bot" in request.headers["user-agent"]
    assert request.headers["host"] == f"news.example:{public.port}"
    assert (request.path, request.headers["if-none-match"]) == ("/feed", '"1"')


def test_redirects_are_followed_and_those_for_good_are_told(public: Site) -> None:
    public.pages |= {
        "/old": Response(301, headers={"Location": "/new"}),
        "/new": Response(308, headers={"Location": public.url("/newer")}),
        "/newer": Response(302, headers={"Location": "today"}),
        "/today": Response(200, b"here"),
        "/other": Response(302, headers={"Location": "/old"}),
    }
    answer = fetch(public.url("/old"))
    assert (answer.body, answer.url, answer.moved) == (b"here", public.url("/today"), public.url("/newer"))
    assert fetch(public.url("/other")).moved is None, "what comes after one for now is for now"


def test_redirects_end(public: Site) -> None:
    numbers = count()
    public.pages["/loop"] = lambda request: Response(302, headers={"Location": f"/loop?{next(numbers)}"})
    assert refusal(public.url("/loop"), FetchPolicy(redirects=3)).startswith("too many redirects (")
    assert len(public.requests) == 4


@pytest.mark.parametrize("there", ["file:///etc/passwd", "ftp://example.org/", "http://[", "gopher://x"])
def test_redirects_stay_on_the_web(public: Site, there: str) -> None:
    public.pages["/feed"] = Response(302, headers={"Location": there})
    with pytest.raises((InputError, FetchProblem), match="no address"):
        fetch(public.url("/feed"))


def test_a_public_address_does_not_lead_inside(public: Site, site: Site) -> None:
    site.pages["/secret"] = Response(200, b"secret")
    public.pages["/feed"] = Response(301, headers={"Location": site.url("/secret")})
    assert "an address in a private network" in refusal(public.url("/feed"))
    assert site.requests == [], "it was not even asked"


def test_a_name_that_leads_inside_is_refused_before_it_is_asked(site: Site) -> None:
    network = EgressPolicy(lambda host, port: [PUBLIC, "127.0.0.1"], NETWORK.is_inside)
    with Fetcher(network=network) as fetcher, pytest.raises(FetchProblem, match="private network"):
        fetcher.fetch(f"http://rebinding.example:{site.port}/", {})
    assert site.requests == []


def test_what_the_owner_typed_may_be_inside_and_leads_to_its_own_host_only(site: Site) -> None:
    with a_site("127.0.0.3") as other:
        site.pages |= {
            "/feed": Response(302, headers={"Location": "/there"}),
            "/there": Response(200, b"here"),
            "/away": Response(302, headers={"Location": other.url("/")}),
        }
        assert "private network" in refusal(site.url("/feed"))
        assert fetch(site.url("/feed"), inside_host="127.0.0.1").body == b"here"
        assert "private network" in refusal(site.url("/away"), inside_host="127.0.0.1")
        assert other.requests == []


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "file:///etc/passwd", "http://", "http://[", "http://a:b", "http://a b/", "x://a"],
)
def test_no_addresses(url: str) -> None:
    with pytest.raises(InputError, match="no address on the web"):
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
def test_passwords_are_not_kept_and_not_repeated(url: str) -> None:
    with pytest.raises(InputError) as caught:
        split_host(url)
    assert "secret" not in str(caught.value) + str(caught.value.facts())


@pytest.mark.parametrize("url", PASSWORDS)
def test_a_redirect_with_a_password_is_not_repeated(public: Site, url: str) -> None:
    """What is wrong with a feed is listed, for everybody who may."""
    public.pages["/feed"] = Response(302, headers={"Location": url})
    with pytest.raises(TidingsError) as caught:
        fetch(public.url("/feed"))
    assert "secret" not in str(caught.value) + str(caught.value.facts())
    assert len(public.requests) == 1


def test_passwords_of_this_machine_are_sent_to_nobody(
    public: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text(f"machine {PUBLIC} login ann password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    public.pages["/feed"] = Response()
    fetch(public.url("/feed"))
    assert "authorization" not in public.requests[0].headers


def test_a_body_is_read_up_to_the_limit(public: Site) -> None:
    public.pages["/exact"] = Response(200, b"x" * 1_000)
    public.pages["/endless"] = lambda request: Response(200, repeat(b"x" * 1_000))
    assert len(fetch(public.url("/exact"), FetchPolicy(size=1_000)).body) == 1_000
    endless = public.url("/endless")
    said = refusal(endless, FetchPolicy(size=999))
    assert said == f"the answer is too large ({endless}); accepted: 999 bytes"


def test_a_small_body_that_stands_for_a_large_one(public: Site) -> None:
    packed = gzip.compress(b"x" * 10_000_000)
    public.pages["/bomb"] = Response(200, packed, {"Content-Encoding": "gzip"})
    public.pages["/cut"] = Response(200, packed[:-20], {"Content-Encoding": "gzip"})
    public.pages["/strange"] = Response(200, zlib.compress(b"x"), {"Content-Encoding": "deflate"})
    public.pages["/broken"] = Response(200, b"no gzip", {"Content-Encoding": "gzip"})
    assert fetch(public.url("/bomb")).body == b"x" * 10_000_000
    assert "the answer is too large" in refusal(public.url("/bomb"), FetchPolicy(size=9_999_999))
    assert "cut short" in refusal(public.url("/cut"))
    assert "received deflate" in refusal(public.url("/strange"))
    assert "no answer that can be read" in refusal(public.url("/broken"))


def test_fetch_data_after_the_compressed_body_is_refused(public: Site) -> None:
    """zlib keeps what follows, and copies it with each further piece."""
    packed = gzip.compress(b"x")
    public.pages["/more"] = lambda request: Response(
        200, chain([packed], repeat(b"y" * 1_000)), {"Content-Encoding": "gzip"}
    )
    assert "something follows the compressed answer" in refusal(public.url("/more"), FetchPolicy(total=5))


def test_an_answer_in_drops_ends(public: Site) -> None:
    """Each drop comes in time; all of them together do not. The server stops when nobody listens any more."""
    listening = Event()

    def drops() -> Iterator[bytes]:
        try:
            while not listening.wait(0.01):
                yield b"x"
        finally:
            listening.set()

    public.pages["/slow"] = lambda request: Response(200, drops())
    assert "takes too long" in refusal(public.url("/slow"), FetchPolicy(total=0.1))
    assert listening.wait(60)


def test_headers_in_drops_end_too() -> None:
    with socket.create_server((PUBLIC, 0)) as server, ThreadPoolExecutor(1) as pool:
        url = f"http://{PUBLIC}:{server.getsockname()[1]}/"
        dripping = pool.submit(_drip_headers, server)
        assert "takes too long" in refusal(url, FetchPolicy(total=0.1))
        assert dripping.result(60) == "nobody listens"


def _drip_headers(server: socket.socket) -> str:
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        try:
            while not Event().wait(0.01):
                connection.sendall(b"x")
        except OSError:
            return "nobody listens"
    return "unreachable"


def test_no_answer_at_all(public: Site) -> None:
    ended = Event()

    def silent(request: Request) -> Response:
        ended.wait(60)
        return Response()

    public.pages["/silent"] = silent
    url = public.url("/silent")
    assert refusal(url, FetchPolicy(read=0.05)) == f"no answer in time ({url}); accepted: 0.05 seconds"
    ended.set()


def test_nobody_listens() -> None:
    with a_site(PUBLIC) as gone:
        url = gone.url()
    assert refusal(url) == (
        f"nothing listens there: the connection was refused ({url}); does the server run, at this port?"
    )


@pytest.mark.parametrize("linger", [b"", struct.pack("ii", 1, 0)], ids=["ended", "reset"])
def test_a_server_that_ends_the_connection(linger: bytes) -> None:
    with socket.create_server((PUBLIC, 0)) as server, ThreadPoolExecutor(1) as pool:
        url = f"http://{PUBLIC}:{server.getsockname()[1]}/"
        ending = pool.submit(_hang_up, server, linger)
        assert refusal(url) == f"the server ended the connection without an answer ({url})"
        ending.result(60)


def _hang_up(server: socket.socket, linger: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(100_000)
        if linger:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


def test_a_host_nobody_knows() -> None:
    with Fetcher() as fetcher, pytest.raises(FetchProblem, match="host") as caught:
        fetcher.fetch("http://nowhere.invalid/", {})
    assert "Errno" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (socket.gaierror(socket.EAI_NONAME, "x"), "there is no host of this name (http://a.example/)"),
        (
            socket.gaierror(socket.EAI_AGAIN, "x"),
            "the host's name cannot be looked up now (http://a.example/)",
        ),
        (UnicodeError("x"), "there is no host of this name (http://a.example/)"),
    ],
)
def test_names_without_an_address(error: Exception, said: str) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise error

    with Fetcher(network=EgressPolicy(resolve)) as fetcher, pytest.raises(FetchProblem) as caught:
        fetcher.fetch("http://a.example/", {})
    assert str(caught.value).startswith(said)


def test_a_server_that_speaks_http_where_tls_is_expected(public: Site) -> None:
    url = public.url("/feed").replace("http:", "https:")
    said = refusal(url)
    assert said.startswith(f"the server does not speak TLS as it should ({url}); received ")
    assert said.endswith("does it answer at http:// instead?")


def test_one_request_for_each_host_at_a_time(public: Site) -> None:
    """Two for one host never meet on the server; two for two hosts do."""
    lock, both = Lock(), Barrier(2)
    met: list[bool] = []

    def alone(request: Request) -> Response:
        met.append(not lock.acquire(blocking=False))
        if not met[-1]:
            Event().wait(0.005)  # long enough to be met by somebody
            lock.release()
        return Response()

    def together(request: Request) -> Response:
        try:
            both.wait(60)
        except BrokenBarrierError:
            return Response(500)
        return Response()

    public.pages |= {"/alone": alone, "/together": together}
    with Fetcher(network=NETWORK) as fetcher, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: fetcher.fetch(public.url("/alone"), {}), range(16)))
        named = EgressPolicy(lambda host, port: [PUBLIC], NETWORK.is_inside)
        with Fetcher(network=named) as other:
            hosts = [f"http://{name}.example:{public.port}/together" for name in "ab"]
            assert [each.status for each in pool.map(lambda url: other.fetch(url, {}), hosts)] == [200, 200]
    assert met == [False] * 16


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for news.example, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on the PATH to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    made, key = folder / "made.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", made]
    command += ["-days", "2", "-subj", "/CN=news.example", "-addext", "subjectAltName=DNS:news.example"]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


def test_the_certificate_is_that_of_the_name_though_the_connection_goes_to_an_address(
    certificate: tuple[Path, Path],
) -> None:
    """Both names lead to the same machine, one after the other: no connection of the first may serve the second."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    network = EgressPolicy(lambda host, port: [PUBLIC], NETWORK.is_inside)
    with a_site(PUBLIC, serving) as site, Fetcher(network=network, tls=trusting) as fetcher:
        site.pages["/feed"] = Response(200, b"hello")
        assert fetcher.fetch(f"https://news.example:{site.port}/feed", {}).body == b"hello"
        with pytest.raises(
            FetchProblem, match=r"certificate cannot be trusted .*; received Hostname mismatch"
        ):
            fetcher.fetch(f"https://other.example:{site.port}/feed", {})
        assert len(site.requests) == 1
    with a_site(PUBLIC, serving) as site, Fetcher(network=network) as fetcher:
        with pytest.raises(FetchProblem, match=r"certificate cannot be trusted .*; received self-signed"):
            fetcher.fetch(f"https://news.example:{site.port}/feed", {})
        assert site.requests == [], "nobody whom we trust has signed it"


def test_a_redirect_to_an_address_that_no_request_can_have(public: Site) -> None:
    public.pages["/feed"] = Response(302, headers={"Location": public.url("/" + "x" * 65_520)})
    assert "no answer that can be read" in refusal(public.url("/feed"))


@pytest.fixture(scope="module")
def lost() -> Iterator[Fetcher]:
    """Wherever an address leads, it is to where nobody listens."""
    with Fetcher(
        FetchPolicy(connect=5, read=5), EgressPolicy(lambda host, port: [PUBLIC], lambda address: False)
    ) as made:
        yield made


@given(
    st.sampled_from(["", "http://", "https://", "http://127.0.0.1", "http://a.example:1"]),
    st.text(alphabet="[]:/@?#%.x1é \\\x00\ud800-_~;=&+İß。٠", max_size=20),
)
def test_whatever_a_stranger_names_is_refused_in_our_words(lost: Fetcher, beginning: str, rest: str) -> None:
    with pytest.raises(TidingsError):
        lost.fetch(beginning + rest, {})
