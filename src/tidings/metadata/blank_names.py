"""URI references for resources that have none: nested ones without rdf:ID, blank nodes in any syntax.

    doc.rdf#host/serverInformation          what the host's serverInformation is
    doc.rdf#host/disks, #host/disks/2       of several, in the order they are written
    doc.rdf#/CycleProvider                  one that nothing leads to; #/CycleProvider/2 is the next

Such a name stays while the way to the resource does, whatever its values become: it is changed, not another one.
A name made of the values would be another resource after each change, and one made of the place in the document (b0,
b1 ...) would move with everything above it. A slash cannot stand in rdf:ID, so names do not meet by chance.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

from tidings.graphs import TYPE, Graph, Term, TermKind

Short = Callable[[str], str]
"""How a class or a property is called, by its IRI."""


def blank_names(graph: Graph, document: str, short: Short) -> Mapping[Term, str]:
    """The URI reference of each blank node of a document."""
    nodes = [node for edge in graph.edges for node in (edge.subject, edge.object)]
    blanks = dict.fromkeys(node for node in nodes if node.kind is TermKind.BLANK)
    if not blanks:
        return {}
    led_to = {edge.object for edge in graph.edges}
    naming = _Naming(graph, document, short)
    naming.follow(dict.fromkeys(node for node in nodes if node.kind is TermKind.IRI))
    naming.begin(blank for blank in blanks if blank not in led_to)
    naming.begin(blanks)  # what is left runs in circles
    return naming.names


class _Naming:
    """Goes along the edges, from what has a name to what has none, the nearest first."""

    def __init__(self, graph: Graph, document: str, short: Short) -> None:
        self.names: dict[Term, str] = {}
        self._start, self._short = f"{document}#", short
        self._times: dict[str, int] = defaultdict(int)
        self._edges: dict[Term, list[tuple[str, Term]]] = defaultdict(list)
        self._types: dict[Term, str] = {}
        for subject, property, object in graph.edges:
            if property.text == TYPE:
                self._types.setdefault(subject, object.text)
            elif object.kind is TermKind.BLANK:
                self._edges[subject].append((property.text, object))

    def begin(self, blanks: Iterable[Term]) -> None:
        for blank in blanks:
            if blank not in self.names:
                self._call(blank, f"{self._start}/{self._short(self._types.get(blank, ''))}")
                self.follow([blank])

    def follow(self, nodes: Iterable[Term]) -> None:
        waiting = deque(nodes)
        while waiting:
            node = waiting.popleft()
            for property, blank in self._edges.get(node, ()):
                if blank not in self.names:
                    self._call(blank, f"{self._owner(node)}/{self._short(property)}")
                    waiting.append(blank)

    def _owner(self, node: Term) -> str:
        """The document may describe itself: its name has no fragment yet."""
        name = self.names.get(node, node.text)
        return name if "#" in name else f"{name}#"

    def _call(self, blank: Term, name: str) -> None:
        self._times[name] += 1
        self.names[blank] = name if self._times[name] == 1 else f"{name}/{self._times[name]}"
