"""Differences between two versions of a document (section 3.5 of paper 001)."""

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


def test_compare_versions_changed_value_lists_property() -> None:
    reader = DocumentReader(parse_schema(decode((EXAMPLES / "schema.ttl").read_bytes(), "text/turtle")))
    before, after = (
        reader.read((EXAMPLES / name).read_bytes(), "application/rdf+xml", "http://example.org/doc.rdf")
        for name in ("host.rdf", "host-with-32MB.rdf")
    )
    (host, info), (_, changed_info) = before.resources, after.resources
    changes = compare_versions(before.resources, after.resources)
    assert changes == DocumentChanges(
        changed=(ChangedResource(info, changed_info, ("memory",)),), unchanged=(host,)
    )


def test_compare_versions_added_deleted_and_equal_documents() -> None:
    assert compare_versions((), (A,)) == DocumentChanges(new=(A,))
    assert compare_versions((A,), ()) == DocumentChanges(deleted=(A,))
    assert compare_versions((A,), (A,)) == DocumentChanges(unchanged=(A,))


def test_compare_versions_changed_added_and_removed_values() -> None:
    after = Resource("d#a", "Host", {"size": (6,), "near": (Ref("d#b"),)})
    assert compare_versions((A,), (after,)).changed == (ChangedResource(A, after, ("size", "near", "tags")),)


def test_compare_versions_one_of_several_values_is_change() -> None:
    after = Resource("d#a", "Host", {"size": (5,), "tags": ("x",)})
    assert compare_versions((A,), (after,)).changed == (ChangedResource(A, after, ("tags",)),)


def test_compare_versions_other_class_is_change() -> None:
    after = Resource("d#a", "Server", A.values)
    assert compare_versions((A,), (after,)).changed == (ChangedResource(A, after, (TYPE_PROPERTY,)),)


@given(st.data())
def test_compare_versions_changes_applied_to_old_version_give_new(data: st.DataObject) -> None:
    """Each resource is in exactly one kind of change."""
    history: list[Step] = data.draw(schemas().flatmap(histories))
    resources_by_uri: dict[str, Resource] = {}
    for step in history:
        before = [each for each in resources_by_uri.values() if each.uri.startswith(f"{step.uri}#")]
        after = step.resources if isinstance(step, Registered) else ()
        changes = compare_versions(before, after)
        assert uris(before) == uris(
            (*changes.deleted, *changes.unchanged, *(each.before for each in changes.changed))
        )
        assert all(resources_by_uri[each.uri] == each for each in changes.unchanged)
        assert all(each.before != each.after and each.properties for each in changes.changed)
        for each in changes.deleted:
            del resources_by_uri[each.uri]
        resources_by_uri |= {
            each.uri: each for each in (*changes.new, *(changed.after for changed in changes.changed))
        }
    assert resources_by_uri == state(history)


def uris(resources: Iterable[Resource]) -> list[str]:
    return sorted(each.uri for each in resources)
