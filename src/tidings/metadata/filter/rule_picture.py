"""Drawing of the dependency graph: triggering rules at the bottom, join rules above, named rules on top.

Shared atomic rules are one box. If there are too many boxes, rules of one kind share a box.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from tidings.core.drawing.picture import Box, Edge, Picture
from tidings.core.text import plural
from tidings.errors import NotFound
from tidings.metadata.resources import SUBJECT
from tidings.metadata.rules.atomic import JoinCondition, TriggeringRule
from tidings.metadata.rules.normal_form import JoinPredicate
from tidings.metadata.rules.rule_errors import suggest_name
from tidings.metadata.rules.syntax import Constant, format_constant, format_name, format_property
from tidings.metadata.sql.rule_graph import (
    AtomicRuleInfo,
    JoinNode,
    NamedRuleInfo,
    RuleGraphView,
    RuleKind,
    RuleKindCount,
    RuleKindGraph,
)
from tidings.store.store import Store

# In a large rule base, rules of one kind are drawn as one box, with counts of rules and of results.


RULE_PICTURE_TITLE = "Rules and the atomic rules they share"
NAMED_LEVEL = -1
"""The level of named rules."""


def draw_rule_kinds(kinds: RuleKindGraph, max_boxes: int) -> Picture:
    """Draw one box for all rules of a kind; if there are still too many, merge kinds."""
    together = next(
        (each for each in _COARSER if len({each(kind) for kind in kinds.counts}) <= max_boxes), _COARSER[-1]
    )
    counts: dict[RuleKind, RuleKindCount] = defaultdict(lambda: RuleKindCount(0, 0))
    for kind, counted in kinds.counts.items():
        rules, results = counts[together(kind)]
        counts[together(kind)] = RuleKindCount(rules + counted.rules, results + counted.results)
    inputs = Counter[tuple[RuleKind, RuleKind]]()
    for (source, target), number in kinds.inputs.items():
        inputs[together(source), together(target)] += number
    return _picture(counts, inputs, kinds.groups)


_COARSER: tuple[Callable[[RuleKind], RuleKind], ...] = (
    lambda kind: kind,
    lambda kind: kind._replace(owner=None),
    lambda kind: kind._replace(owner=None, property=None, operator=None),
    lambda kind: RuleKind(kind.level),
)
"""Ways to group rules, from the finest to the coarsest."""


def _picture(
    counts: Mapping[RuleKind, RuleKindCount],
    inputs: Mapping[tuple[RuleKind, RuleKind], int],
    groups: Mapping[int, JoinCondition],
) -> Picture:
    top = 1 + max(kind.level for kind in counts)
    rules = sum(count.rules for kind, count in counts.items() if kind.level == NAMED_LEVEL)
    atomic = sum(count.rules for kind, count in counts.items() if kind.level != NAMED_LEVEL)
    notes = (
        f"{plural(rules, 'rule')}, {plural(atomic, 'atomic rule')}: too many to draw. A box has all rules of a kind.",
        "Numbers at lines count inputs. To draw a few rules only: tidings rules graph --rule NAME",
    )
    ordered = sorted(counts, key=lambda kind: tuple(str(part) for part in kind))
    boxes = tuple(_box(kind, counts[kind], top, groups) for kind in ordered)
    edges = tuple(
        Edge(_key(source), _key(target), f"{number:,}")
        for (source, target), number in sorted(inputs.items(), key=lambda entry: tuple(map(_key, entry[0])))
    )
    descriptions = (f"{box.title}, {box.text}: {box.count}." for box in reversed(boxes))
    return Picture(
        RULE_PICTURE_TITLE, " ".join((*notes, *descriptions)), name_layers(top), boxes, edges, notes
    )


def _key(kind: RuleKind) -> str:
    return " ".join("-" if part is None else str(part) for part in kind)


def _box(kind: RuleKind, counts: RuleKindCount, top: int, groups: Mapping[int, JoinCondition]) -> Box:
    count = plural(counts.results, "result")
    if kind.level == NAMED_LEVEL:
        text = "of all owners" if kind.owner is None else f"of {kind.owner}"
        return Box(_key(kind), top, "named", plural(counts.rules, "rule"), text, count)
    if kind.level == 0:
        return Box(
            _key(kind), 0, "triggering", plural(counts.rules, "triggering rule"), _describe_kind(kind), count
        )
    group = None if kind.group is None else f"group {kind.group}"
    text = "of all groups"
    if kind.group is not None:
        condition = groups[kind.group]
        names = format_name(condition.left.cls), format_name(condition.right.cls)
        text = describe_join_condition(condition, *names)
    return Box(_key(kind), kind.level, "join", plural(counts.rules, "join rule"), text, count, group)


def _describe_kind(kind: RuleKind) -> str:
    if kind.cls is None:
        return "of all classes"
    if kind.operator is None:
        return f"all of {format_name(kind.cls)}"
    path = format_name(kind.cls) + ("" if kind.property is None else f".{format_name(kind.property)}")
    return f"{path} {kind.operator} …"


def describe_join_condition(condition: JoinCondition, left: str, right: str) -> str:
    """Describe a join condition, with the registered side first if the operator can be flipped."""
    registered, other = (left, right) if condition.registers_left else (right, left)
    return " and ".join(_describe_predicate(registered, each, other) for each in condition.oriented)


def _describe_predicate(registered: str, predicate: JoinPredicate, other: str) -> str:
    own, partner = _side(registered, predicate.left), _side(other, predicate.right)
    return (
        f"{partner} {predicate.operator.value} {own}"
        if predicate.swapped
        else f"{own} {predicate.operator.value} {partner}"
    )


def _side(name: str, property: str | None) -> str:
    return name if property is None else f"{name}.{format_property(property)}"


def name_layers(top: int) -> tuple[str, ...]:
    """Return the names of layers, from the lowest up."""
    joins = ("join rules",) if top == 2 else tuple(f"join rules,\nlevel {level}" for level in range(1, top))
    return ("triggering\nrules", *joins, "rules")


MAX_BOXES = 60
"""The maximal number of boxes; beyond it, rules of one kind share a box."""


def build_rule_picture(store: Store, names: Collection[str] = (), max_boxes: int = MAX_BOXES) -> Picture:
    """Draw all rules, or some by name."""
    graph, selected = store.rule_graph, tuple(dict.fromkeys(names))
    for name in graph.missing(selected):
        raise NotFound("there is no such rule", received=name, hint=suggest_name(name, graph.names()))
    if graph.size(selected) <= max_boxes:
        return draw_each_rule(graph.load_all(selected))
    return draw_rule_kinds(graph.kinds(selected), max_boxes)


def draw_each_rule(graph: RuleGraphView) -> Picture:
    """Draw a box for each rule and each atomic rule."""
    top = 1 + max((each.level for each in graph.atomic), default=0)
    boxes = [_atomic_box(each) for each in graph.atomic] + [_named_box(each, top) for each in graph.named]
    edges = [
        Edge(f"#{number}", f"#{each.number}")
        for each in graph.atomic
        if isinstance(each.rule, JoinNode)
        for number in dict.fromkeys((each.rule.left, each.rule.right))
    ]
    edges += [Edge(f"#{number}", f"rule {each.name}") for each in graph.named for number in each.ends]
    counts = f"{plural(len(graph.named), 'rule')}, {plural(len(graph.atomic), 'atomic rule')}"
    note = f"{counts}. Equal atomic rules share a box; results flow upwards along the lines."
    described = " ".join((note, *_sentences(graph)))
    return Picture(RULE_PICTURE_TITLE, described, name_layers(top), tuple(boxes), tuple(edges), (note,))


def _atomic_box(atomic: AtomicRuleInfo) -> Box:
    title = f"#{atomic.number} {_get_registered_class(atomic.rule)}"
    kind, group = ("join", f"group {atomic.group}") if atomic.group is not None else ("triggering", None)
    text, count = _describe_rule(atomic.rule), plural(atomic.results, "result")
    return Box(f"#{atomic.number}", atomic.level, kind, title, text, count, group)


def _named_box(rule: NamedRuleInfo, layer: int) -> Box:
    count = plural(rule.results, "result")
    return Box(f"rule {rule.name}", layer, "named", rule.name, f"of {rule.owner}", count)


def _get_registered_class(rule: TriggeringRule | JoinNode) -> str:
    return rule.cls if isinstance(rule, TriggeringRule) else rule.condition.sides[0].cls


def _describe_rule(rule: TriggeringRule | JoinNode) -> str:
    """`memory > 64`, `= <http://example.org/doc.rdf#host>`, `#3.serverInformation = #4`."""
    if isinstance(rule, JoinNode):
        return describe_join_condition(rule.condition, f"#{rule.left}", f"#{rule.right}")
    if rule.property is None or rule.operator is None or rule.constant is None:
        return "all of the class"
    path = "" if rule.property == SUBJECT else f"{format_name(rule.property)} "
    return f"{path}{rule.operator.value} {format_constant(Constant(rule.constant, rule.is_resource))}"


def _sentences(graph: RuleGraphView) -> Iterable[str]:
    """Describe the drawing for screen readers."""
    for rule in graph.named:
        ends = " and ".join(f"#{number}" for number in rule.ends)
        yield f"Rule {rule.name} of {rule.owner} has the results of {ends}: {plural(rule.results, 'result')}."
    for atomic in reversed(graph.atomic):
        group = f", group {atomic.group}" if atomic.group is not None else ""
        count = plural(atomic.results, "result")
        registered, condition = _get_registered_class(atomic.rule), _describe_rule(atomic.rule)
        yield f"#{atomic.number}{group}, {registered} with {condition}: {count}."
