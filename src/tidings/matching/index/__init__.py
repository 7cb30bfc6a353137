"""The index: memory-mapped segments of subscriptions, matched by kernels."""

from tidings.matching.index.index import Index, SegmentDescription
from tidings.matching.index.matches import Matches
from tidings.matching.index.merger import Merger

__all__ = ["Index", "Matches", "Merger", "SegmentDescription"]
