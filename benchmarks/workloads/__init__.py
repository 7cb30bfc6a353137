"""Workloads of the benchmarks: generated subscriptions and publications."""

from benchmarks.workloads.ads import ads
from benchmarks.workloads.begen import begen
from benchmarks.workloads.equalities import equalities
from benchmarks.workloads.events import Attribute, Events
from benchmarks.workloads.forms import SIGNS, Subscriptions, TestColumn, Workload
from benchmarks.workloads.intervals import intervals
from benchmarks.workloads.paper004 import paper004
from benchmarks.workloads.runs import Integers
from benchmarks.workloads.stock import stock

__all__ = [
    "SIGNS",
    "Attribute",
    "Events",
    "Integers",
    "Subscriptions",
    "TestColumn",
    "Workload",
    "ads",
    "begen",
    "equalities",
    "intervals",
    "paper004",
    "stock",
]
