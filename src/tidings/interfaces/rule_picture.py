"""The dependency graph of rules as a picture: triggering rules below, join rules above, rules with names on top.

What many rules have in common is one box. Too many boxes are drawn as kinds (`rule_kinds_picture`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tidings.counts import plural
from tidings.errors import Absent
from tidings.interfaces.drawing.picture import Box, Edge, Picture
from tidings.interfaces.rule_kinds_picture import TITLE, layers, meets, rules_by_kind
from tidings.languages.rules_refusals import near
from tidings.languages.rules_shown import show_constant, show_name
from tidings.languages.rules_tree import Constant
from tidings.metadata.atomic import Triggering
from tidings.metadata.network import Joined
from tidings.metadata.resources import SUBJECT
from tidings.store import Store
from tidings.store.rule_graph import AtomicSeen, Graph, NamedSeen

MOST = 60
"""So many boxes are drawn at most; beyond, rules of one kind are one box."""


def picture_of(store: Store, names: Collection[str] = (), most: int = MOST) -> Picture:
    """The picture of all rules, or of some by name."""
    graph, wanted = store.rule_graph, tuple(dict.fromkeys(names))
    for name in graph.missing(wanted):
        raise Absent("there is no such rule", received=name, hint=near(name, graph.names()))
    if graph.size(wanted) <= most:
        return every_rule(graph.every(wanted))
    return rules_by_kind(graph.kinds(wanted), most)


def every_rule(graph: Graph) -> Picture:
    """A box for each rule and for each atomic rule."""
    top = 1 + max((each.level for each in graph.atomic), default=0)
    boxes = [_atomic_box(each) for each in graph.atomic] + [_named_box(each, top) for each in graph.named]
    edges = [
        Edge(f"#{number}", f"#{each.number}")
        for each in graph.atomic
        if isinstance(each.asked, Joined)
        for number in dict.fromkeys((each.asked.left, each.asked.right))
    ]
    edges += [Edge(f"#{number}", f"rule {each.name}") for each in graph.named for number in each.ends]
    counts = f"{plural(len(graph.named), 'rule')}, {plural(len(graph.atomic), 'atomic rule')}"
    note = f"{counts}. Equal atomic rules are one; results go up along the lines."
    described = " ".join((note, *_sentences(graph)))
    return Picture(TITLE, described, layers(top), tuple(boxes), tuple(edges), (note,))


def _atomic_box(rule: AtomicSeen) -> Box:
    title = f"#{rule.number} {_registered(rule.asked)}"
    kind, group = ("join", f"group {rule.group}") if rule.group is not None else ("triggering", None)
    return Box(
        f"#{rule.number}", rule.level, kind, title, _asks(rule.asked), plural(rule.results, "result"), group
    )


def _named_box(rule: NamedSeen, layer: int) -> Box:
    count = plural(rule.results, "result")
    return Box(f"rule {rule.name}", layer, "named", rule.name, f"of {rule.owner}", count)


def _registered(asked: Triggering | Joined) -> str:
    if isinstance(asked, Triggering):
        return asked.cls
    meeting = asked.meeting
    return meeting.left.cls if meeting.registers_left else meeting.right.cls


def _asks(asked: Triggering | Joined) -> str:
    """`memory > 64`, `= <http://example.org/doc.rdf#host>`, `#3.serverInformation = #4`."""
    if isinstance(asked, Joined):
        return meets(asked.meeting, f"#{asked.left}", f"#{asked.right}")
    if asked.property is None or asked.compares is None or asked.constant is None:
        return "all of the class"
    path = "" if asked.property == SUBJECT else f"{show_name(asked.property)} "
    return f"{path}{asked.compares.value} {show_constant(Constant(asked.constant, asked.is_resource))}"


def _sentences(graph: Graph) -> Iterable[str]:
    """The picture for those who listen to it."""
    for rule in graph.named:
        ends = " and ".join(f"#{number}" for number in rule.ends)
        yield f"Rule {rule.name} of {rule.owner} has what {ends} has: {plural(rule.results, 'result')}."
    for each in reversed(graph.atomic):
        group = f", group {each.group}" if each.group is not None else ""
        count = plural(each.results, "result")
        yield f"#{each.number}{group}, {_registered(each.asked)} with {_asks(each.asked)}: {count}."
