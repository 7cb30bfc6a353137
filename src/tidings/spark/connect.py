"""Streams through Spark Connect: a query lives on the server, and goes on when the process that started it has died.

    <home>/connect-session       the session on the server that a stream runs in, while it does

Nothing is lost by that, but the next stream of this home could not begin, for an hour, until the server gives an
abandoned session up. So whoever comes next ends the session whose name is still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from tidings.durable import write_whole

NOTE = "connect-session"


@contextmanager
def noted(session: SparkSession, home: Path) -> Iterator[None]:
    """Keep the name of the session in the home folder until the end of the `with`. After a failure it stays: what is
    left on the server then is ended by whoever comes next.
    """
    if not is_remote():
        yield
        return
    write_whole(home / NOTE, session.session_id, private=True)
    yield
    (home / NOTE).unlink()


def end_earlier(session: SparkSession, home: Path) -> None:
    """End the session of a stream that was killed, and with it the queries that it has left on the server.

    A server that does not know the session, because it was started anew or has given it up, has nothing to do.
    """
    note = home / NOTE
    if not (is_remote() and note.exists()) or note.read_text() == session.session_id:
        return
    from pyspark.sql.connect.client import SparkConnectClient  # noqa: PLC0415 - imports gRPC

    same_server = deepcopy(session.client._builder)
    same_server.set("session_id", note.read_text())
    with closing(SparkConnectClient(same_server)) as earlier:
        earlier.release_session()
