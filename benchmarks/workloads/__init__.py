"""What the benchmarks ask and publish. The names that the rest uses:"""

from benchmarks.workloads.events import Attribute, Events, Integers
from benchmarks.workloads.forms import SIGNS, Subscriptions, TestColumn, Workload
from benchmarks.workloads.paper004 import paper004
from benchmarks.workloads.stock import stock

__all__ = [
    "SIGNS",
    "Attribute",
    "Events",
    "Integers",
    "Subscriptions",
    "TestColumn",
    "Workload",
    "paper004",
    "stock",
]
