"""The index: memory-mapped segments of subscriptions, matched by kernels."""

from tidings.matching.index.compaction_worker import CompactionWorker
from tidings.matching.index.index import Index, SegmentDescription
from tidings.matching.index.matches import Matches

__all__ = ["CompactionWorker", "Index", "Matches", "SegmentDescription"]
