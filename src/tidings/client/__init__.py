"""The service from another program: typed calls over HTTP that try again, and a stream that is never interrupted.

    from tidings.client import Client

    with Client("http://127.0.0.1:8080", "tdg_...") as client:
        for told in client.follow():
            print(told.sequence, told.content)

`AsyncClient` has the same calls, to be awaited. Nothing of the engine is imported: neither Spark nor Numba.
"""

from tidings.client.answers import NoAnswer
from tidings.client.async_client import AsyncClient
from tidings.client.client import Client
from tidings.client.retrying import Patience
from tidings.client.told import Content, Page, Standing, Told

__all__ = ["AsyncClient", "Client", "Content", "NoAnswer", "Page", "Patience", "Standing", "Told"]
