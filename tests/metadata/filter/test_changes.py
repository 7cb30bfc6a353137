"""What is different between two versions of a document (section 3.5 of paper 001)."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from tests.support.strategies.metadata import Registered, Step, histories, schemas, state
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.metadata.documents import DocumentReader
from tidings.metadata.filter.changes import TYPE_PROPERTY, ChangedResource, DocumentChanges, compare_versions
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.schema.schema_parser import parse_schema

EXAMPLES = ROOT / "examples/metadata"
A = Resource("d#a", "Host", {"size": (5,), "tags": ("x", "y")})


def test_a_server_gets_less_memory() -> None:
    reader = DocumentReader(parse_schema(decode((EXAMPLES / "schema.ttl").read_bytes(), "text/turtle")))
    before, after = (
        reader.read((EXAMPLES / name).read_bytes(), "application/rdf+xml", "http://example.org/doc.rdf")
        for name in ("host.rdf", "host-with-32MB.rdf")
    )
    (host, info), (_, less) = before.resources, after.resources
    found = compare_versions(before.resources, after.resources)
    assert found == DocumentChanges(changed=(ChangedResource(info, less, ("memory",)),), unchanged=(host,))


def test_a_document_comes_and_goes() -> None:
    assert compare_versions((), (A,)) == DocumentChanges(new=(A,))
    assert compare_versions((A,), ()) == DocumentChanges(deleted=(A,))
    assert compare_versions((A,), (A,)) == DocumentChanges(unchanged=(A,))


def test_values_that_are_changed_added_and_removed() -> None:
    after = Resource("d#a", "Host", {"size": (6,), "near": (Ref("d#b"),)})
    assert compare_versions((A,), (after,)).changed == (ChangedResource(A, after, ("size", "near", "tags")),)


def test_one_of_several_values_is_a_change() -> None:
    after = Resource("d#a", "Host", {"size": (5,), "tags": ("x",)})
    assert compare_versions((A,), (after,)).changed == (ChangedResource(A, after, ("tags",)),)


def test_another_class_is_a_change() -> None:
    after = Resource("d#a", "Server", A.values)
    assert compare_versions((A,), (after,)).changed == (ChangedResource(A, after, (TYPE_PROPERTY,)),)


@given(st.data())
def test_changes_lead_from_one_version_to_the_next(data: st.DataObject) -> None:
    """Put onto what was there, step by step, they give what is there in the end; each resource is in one of them."""
    history: list[Step] = data.draw(schemas().flatmap(histories))
    there: dict[str, Resource] = {}
    for step in history:
        before = [each for each in there.values() if each.uri.startswith(f"{step.uri}#")]
        after = step.resources if isinstance(step, Registered) else ()
        found = compare_versions(before, after)
        assert uris(before) == uris(
            (*found.deleted, *found.unchanged, *(each.before for each in found.changed))
        )
        assert all(there[each.uri] == each for each in found.unchanged)
        assert all(each.before != each.after and each.properties for each in found.changed)
        for each in found.deleted:
            del there[each.uri]
        there |= {each.uri: each for each in (*found.new, *(changed.after for changed in found.changed))}
    assert there == state(history)


def uris(resources: Iterable[Resource]) -> list[str]:
    return sorted(each.uri for each in resources)
