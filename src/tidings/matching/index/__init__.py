"""Index of standing subscriptions: memory-mapped segments that kernels match against publications.

`index.Index` is the interface. `build` turns compiled subscriptions into a segment, `segment` writes and
opens one, `matcher` runs the kernels over it, `versions` and `view` keep track of segments, and `compaction`
merges them.
"""

from tidings.matching.index.compaction import CompactionWorker
from tidings.matching.index.index import Index, SegmentDescription
from tidings.matching.index.matches import Matches

__all__ = ["CompactionWorker", "Index", "Matches", "SegmentDescription"]
