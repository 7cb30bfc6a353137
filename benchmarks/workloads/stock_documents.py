"""Stock quotes as documents: section 5.1 of paper 003, figure 5.1.

    <stock><symbol>S0017</symbol><price>201.33</price><open>198.76</open><change>2.57</change><low>198.01</low>...

    /stock/symbol/text() = "S0017" AND /stock/price/text() > 201.33 AND /stock/open/text() < 198.76 AND ...

These are the quotes and the subscriptions of `stock`, written as XML and XPath.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.workloads.documents import Documents, DocumentWorkload, Texts
from benchmarks.workloads.events import Attribute, Events
from benchmarks.workloads.forms import Subscriptions, Workload
from benchmarks.workloads.runs import Integers
from benchmarks.workloads.stock import TESTS, stock

NAME = "stock documents"
MANY = 10.0
"""Default of matches per document with a million subscriptions: the share of table 5.2."""

EASE = {0.1: -1.811, 1.0: -1.124, MANY: -0.261, 100.0: 1.289}
"""Ease of bounds by matches per document with a million subscriptions: with 10,000 documents these are the 1,000 to
1,000,000 notifications of table 5.1."""


class StockWorkloads(NamedTuple):
    """The same quotes and subscriptions as documents and texts, and in columns for the reference matching."""

    documents: DocumentWorkload
    columns: Workload


def stock_documents(
    subscriptions: int, documents: int, matches: float = MANY, symbols: int = 5000, seed: int = 3
) -> StockWorkloads:
    """Generate subscriptions and documents. `matches` is a key of `EASE`: matches per document and million."""
    columns = stock(subscriptions, documents, symbols, EASE[matches], seed=seed, name=title(matches))
    texts, quotes = _texts(columns.subscriptions), _documents(columns.events)
    return StockWorkloads(DocumentWorkload(columns.name, texts, quotes), columns)


def title(matches: float) -> str:
    return f"{NAME}, {matches:g} in a million match"


def _texts(subscriptions: Subscriptions) -> Texts:
    symbol, price, opening, high, volume = subscriptions.low.reshape(-1, len(TESTS)).T
    texts = pc.binary_join_element_wise(
        '/stock/symbol/text() = "',
        _names(subscriptions.attributes[0], symbol),
        '" AND /stock/price/text() > ',
        _money(price),
        " AND /stock/open/text() < ",
        _money(opening),
        " AND /stock/high/text() > ",
        _money(high),
        " AND /stock/volume/text() > ",
        _whole(volume),
        "",
    )
    starts = np.arange(len(subscriptions) + 1) * len(TESTS)
    return Texts((texts,), starts, np.tile(np.arange(len(TESTS)), len(subscriptions)))


def _documents(quotes: Events) -> Documents:
    symbol, price, opening, high, low, _, volume = quotes.value.reshape(-1, len(quotes.attributes)).T
    values = {
        "symbol": _names(quotes.attributes[0], symbol),
        "price": _money(price),
        "open": _money(opening),
        "change": _money(price - opening),
        "low": _money(low),
        "high": _money(high),
        "volume": _whole(volume),
    }
    elements = [part for name, value in values.items() for part in (f"<{name}>", value, f"</{name}>")]
    whole = pc.binary_join_element_wise('<?xml version="1.0"?><stock>', *elements, "</stock>", "")
    return Documents.of(whole.cast(pa.binary()).to_pylist())


def _names(attribute: Attribute, codes: Integers) -> pa.Array:
    return pa.array(attribute.names, pa.string()).take(pa.array(codes))


def _whole(values: Integers) -> pa.Array:
    return pc.cast(pa.array(np.ascontiguousarray(values)), pa.string())


def _money(cents: Integers) -> pa.Array:
    """Format cents: -257 becomes -2.57."""
    cents = np.ascontiguousarray(cents)
    sign = pc.if_else(pa.array(cents < 0), "-", "")
    whole = pc.binary_join_element_wise(sign, _whole(np.abs(cents) // 100), "")
    fraction = pc.utf8_lpad(_whole(np.abs(cents) % 100), 2, "0")
    return pc.binary_join_element_wise(whole, fraction, ".")
