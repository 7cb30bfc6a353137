"""What may be wrong with an RDF Schema, one small check after the other; reading `CHECKS` is reading the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tidings.graphs import RDFS, TYPE, Term, TermKind
from tidings.languages.gql_shown import show_term
from tidings.metadata.literals import KINDS
from tidings.metadata.problems import Finding
from tidings.metadata.schema_statements import (
    CLOSENESS,
    DOMAIN,
    EVERYTHING,
    OURS,
    RANGE,
    REFERENCE,
    SEVERAL,
    SUBCLASS,
    Statements,
    truth,
)
from tidings.metadata.short_names import local
from tidings.schema.names import did_you_mean, safe


def has_classes(said: Statements) -> Iterator[Finding]:
    if not said.classes and not said.nameless:
        accepted = "at least one subject of type rdfs:Class"
        yield Finding("the schema", "there is no class in it", accepted=accepted, hint=_instead(said))


def _instead(said: Statements) -> str | None:
    """What may have been meant by something without classes."""
    types = {term.text for about in said.objects.values() for term in about.get(TYPE, ())}
    if any(each.endswith("#Class") for each in types):
        return "other vocabularies have classes, too: a class is said to be an rdfs:Class here"
    return "resources are registered: tidings provider register URI FILE" if types else None


def have_iris(said: Statements) -> Iterator[Finding]:
    for each in said.nameless:
        yield Finding(f"_:{each.text}", "a class or a property without a name", accepted="an IRI")


def are_one_thing(said: Statements) -> Iterator[Finding]:
    for each in said.classes:
        if each in said.properties:
            yield Finding(each, "a class and a property at once", accepted="one of them")


def are_declared(said: Statements) -> Iterator[Finding]:
    for subject, about in said.objects.items():
        if SUBCLASS in about and subject not in said.classes:
            yield _undeclared(subject, "rdfs:subClassOf", "rdfs:Class")
        used = [each for each in (DOMAIN, RANGE, SEVERAL, REFERENCE) if each in about]
        if used and subject not in said.properties:
            yield _undeclared(subject, _prefixed(used[0]), "rdf:Property")


def _undeclared(subject: str, property: str, kind: str) -> Finding:
    what, hint = f"{property} is said of what is no {kind}", f"declare it: <{subject}> a {kind} ."
    return Finding(subject, what, property, hint=hint)


def have_names(said: Statements) -> Iterator[Finding]:
    for kind, names in (("class", said.classes), ("property", said.properties)):
        for subject, name in names.items():
            if name is None:
                what = f"rules have no name for this {kind}: they call it by the end of its IRI"
                accepted = "an IRI whose end is a word, and no other that comes to the same name"
                yield Finding(subject, what, accepted=accepted)


def are_below_classes(said: Statements) -> Iterator[Finding]:
    for cls in said.classes:
        for above in said.about(cls, SUBCLASS):
            if not said.is_class(above) and above.text != EVERYTHING:
                yield _no_class(said, cls, "rdfs:subClassOf", above)


def _no_class(said: Statements, subject: str, property: str, term: Term, more: str = "") -> Finding:
    hint = did_you_mean(local(term.text), list(map(local, said.classes)))
    accepted = "a class that the schema declares" + more
    return Finding(subject, "not a class of the schema", property, _shown(term), accepted, hint)


def run_in_no_circle(said: Statements) -> Iterator[Finding]:
    """Each circle once, from the first of its classes on."""
    told: set[str] = set()
    for cls in _without_top(said):
        circle = _circle(said, cls) if cls not in told else []
        if circle:
            told.update(circle)
            shown = " → ".join(f"<{each}>" for each in (*circle, cls))
            hint = "one of these statements must go"
            yield Finding(cls, "classes run in a circle", "rdfs:subClassOf", shown, hint=hint)


def _without_top(said: Statements) -> list[str]:
    """Classes from which no way upwards ends: those of a circle and below one. In most schemas there are none."""
    waiting = {cls: len(set(said.parents(cls))) for cls in said.classes}
    below: dict[str, set[str]] = defaultdict(set)
    for cls in said.classes:
        for above in said.parents(cls):
            below[above].add(cls)
    done = [cls for cls, parents in waiting.items() if not parents]
    done += [above for above in below if above not in waiting]
    for cls in done:  # grows while it is gone through
        for each in below[cls]:
            waiting[each] -= 1
            if not waiting[each]:
                done.append(each)
    return [cls for cls, parents in waiting.items() if parents]


def _circle(said: Statements, cls: str) -> list[str]:
    """The shortest way from a class upwards to itself, without its end; empty if there is none."""
    below: dict[str, str] = {}
    level = [cls]
    while level and cls not in below:
        steps = {above: each for each in level for above in said.parents(each) if above not in below}
        below |= steps
        level = list(steps)
    if cls not in below:
        return []
    way = [below[cls]]
    while way[-1] != cls:
        way.append(below[way[-1]])
    return way[::-1]


def have_domains(said: Statements) -> Iterator[Finding]:
    for property in said.properties:
        domains = said.about(property, DOMAIN)
        if not domains:
            what, accepted = "nothing says what has this property", "one class or several"
            yield Finding(property, what, "rdfs:domain", accepted=accepted)
        for domain in domains:
            if not said.is_class(domain):
                yield _no_class(said, property, "rdfs:domain", domain)


def have_ranges(said: Statements) -> Iterator[Finding]:
    for property in said.properties:
        ranges = said.about(property, RANGE)
        if len(ranges) != 1:
            what = "several ranges, and no value is of all" if ranges else "nothing says what its values are"
            accepted = "one class of the schema or one datatype; rdfs:Literal for texts"
            yield Finding(property, what, "rdfs:range", _all(ranges), accepted)
        elif not said.is_class(ranges[0]) and not _is_datatype(ranges[0]):
            more = "; or xsd:string, xsd:boolean, xsd:dateTime, xsd:date, a number of XSD, rdfs:Literal"
            yield _no_class(said, property, "rdfs:range", ranges[0], more)


def _is_datatype(term: Term) -> bool:
    return term.kind is TermKind.IRI and term.text in KINDS


def say_several_well(said: Statements) -> Iterator[Finding]:
    for property in said.properties:
        told = said.about(property, SEVERAL)
        if told and (len(told) > 1 or truth(told[0]) is None):
            yield Finding(property, "neither yes nor no", "md:several", _all(told), "true or false, once")


def say_reference_well(said: Statements) -> Iterator[Finding]:
    for property in said.properties:
        told = said.about(property, REFERENCE)
        if told and (len(told) > 1 or told[0] not in CLOSENESS):
            accepted = f"one of {' and '.join(map(_shown, CLOSENESS))}"
            yield Finding(property, "neither strong nor weak", "md:reference", _all(told), accepted)
        elif told and any(map(_is_datatype, said.about(property, RANGE))):
            what, accepted = "a literal is neither strong nor weak", "a range that is a class"
            yield Finding(property, what, "md:reference", _all(told), accepted)


def say_nothing_else(said: Statements) -> Iterator[Finding]:
    """Words of ours that there are not, and what would mean something to RDFS and nothing here."""
    for subject, about in said.objects.items():
        for property in about:
            if property.startswith(OURS) and property not in (SEVERAL, REFERENCE):
                accepted = f"<{SEVERAL}> and <{REFERENCE}>"
                yield Finding(subject, "Tidings has no such word", f"<{property}>", accepted=accepted)
        if RDFS + "subPropertyOf" in about:
            what = "a property below a property: rules would not see it"
            yield Finding(subject, what, "rdfs:subPropertyOf", accepted="properties that stand by themselves")


def _shown(term: Term) -> str:
    return safe(show_term(term), 200)


def _all(terms: tuple[Term, ...]) -> str | None:
    return " and ".join(map(_shown, terms)) or None


def _prefixed(property: str) -> str:
    return property.replace(RDFS, "rdfs:").replace(OURS, "md:")


CHECKS = (
    has_classes,
    have_iris,
    are_one_thing,
    are_declared,
    have_names,
    are_below_classes,
    run_in_no_circle,
    have_domains,
    have_ranges,
    say_several_well,
    say_reference_well,
    say_nothing_else,
)
