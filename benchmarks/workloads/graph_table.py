"""Table 1 of paper 002: the parameters of the workload of graphs, with the paper's defaults."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.workloads.graph_draws import Size

PUBLICATION, SUBSCRIPTION = Size(35, 90), Size(5, 35)
COMMON_NODES = 50
"""Nodes of the big graph that contains the overlapping subscriptions. They have the first numbers."""

MOST_CORES = 10


@dataclass(frozen=True)
class Table1:
    """The paper's parameters, the number of labels, and the shares of tests of values and classes.

    `matched`, `overlap` and `with_variables` are shares of all subscriptions; `values` and `classes` are shares of
    those with variables, which test one variable for a number or a class. Each published node has an extra edge for it.
    """

    publication: Size = PUBLICATION
    subscription: Size = SUBSCRIPTION
    subscriptions: int = 30_000
    matched: float = 0.001
    variables: int = 2
    with_variables: float = 0.9
    overlap: float = 0.5
    labels: int = 100
    values: float = 0.0
    classes: float = 0.0

    def __post_init__(self) -> None:
        for size in (self.publication, self.subscription):
            if size.nodes < 2 or size.edges < size.nodes - 1:
                raise ValueError(
                    f"{size} is no path: a path has at least two nodes, and an edge to each but the first"
                )
            if size.parallel > self.labels:
                raise ValueError(f"{size} needs {size.parallel} labels, but there are only {self.labels}")
        if self.core < self.subscription.nodes:
            raise ValueError(f"{self.subscription} does not fit into the first half of {self.publication}")
        if self.variables > self.subscription.nodes:
            raise ValueError(f"{self.subscription} has no {self.variables} nodes")

    @property
    def core(self) -> int:
        """Return the number of core nodes of a publication."""
        return -(-self.publication.nodes // 2)

    @property
    def matches_per_publication(self) -> int:
        """Return the number of subscriptions that match a publication."""
        return round(self.matched * self.subscriptions)

    def cores(self, publications: int) -> int:
        """Return the number of cores, limited so that their subscriptions do not exceed the overlapping ones."""
        return max(
            1,
            min(
                publications,
                MOST_CORES,
                int(self.overlap * self.subscriptions) // max(1, self.matches_per_publication),
            ),
        )
