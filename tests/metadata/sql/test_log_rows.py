"""The log of metadata: its entries, and equal metadata for providers that apply it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.stores.server_documents import (
    ALL,
    DOC,
    HOST,
    INFO,
    LARGE,
    OTHER,
    RDF_XML,
    SCHEMA,
    body,
    registered,
)
from tidings.errors import InputError
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.resources import resource_from_json, resource_to_json
from tidings.metadata.schema.findings import MetadataError
from tidings.metadata.sql.log_rows import LogTrimmed
from tidings.store.store import Store, open_store


@pytest.fixture
def provider(store: Store) -> Provider:
    opened = Provider(store)
    opened.load_schema(SCHEMA.body, SCHEMA.media_type)
    return opened


@pytest.fixture
def follower(new_url: Callable[[], str]) -> Iterator[Provider]:
    with open_store(new_url()) as store:
        yield Provider(store)


def test_register_appends_entry_to_log(provider: Provider) -> None:
    assert provider.register(DOC, body("host.rdf"), RDF_XML).position == provider.position == 2
    assert provider.remove(DOC).position == 3
    entries = [SCHEMA.at(1), registered("host.rdf").at(2), LogDraft(Operation.REMOVE, DOC).at(3)]
    assert provider.log.read(0) == entries and provider.log.read(1, limit=1) == entries[1:2]
    assert (provider.log.first(), provider.log.head()) == (1, 3)


def test_register_invalid_document_is_not_logged(provider: Provider) -> None:
    invalid_body = registered("host.rdf").body.replace(b'memory="92"', b'memory="much"')
    for invalid_call in (
        lambda: provider.register(DOC, invalid_body, RDF_XML),
        lambda: provider.append(
            [registered("host.rdf"), LogDraft(Operation.REGISTER, OTHER, RDF_XML, invalid_body)]
        ),
    ):
        with pytest.raises(MetadataError):
            invalid_call()
    assert provider.log.head() == 1 and provider.documents() == ()


def test_append_entries_are_applied_before_later_ones(provider: Provider) -> None:
    assert provider.append([registered("host.rdf"), registered("host.rdf", OTHER)]) == [2, 3]
    assert provider.position == 1 and provider.documents() == ()
    provider.remove(DOC)
    assert provider.position == 4 and provider.documents() == ((OTHER, 2),)
    provider.append(
        [registered("host.rdf"), LogDraft(Operation.REMOVE, OTHER), LogDraft(Operation.REMOVE, DOC)]
    )
    assert [outcome.position for outcome in provider.catch_up(2)] == [6, 7]
    assert provider.catch_up() == [] and provider.documents() == ()


def test_append_schema_applies_to_later_entries(provider: Provider) -> None:
    disk = SCHEMA.body + b":Disk a rdfs:Class ."
    text = b"@prefix s: <http://example.org/servers#> . <#d> a s:Disk ."
    drafts = [
        LogDraft(Operation.SCHEMA, media_type="text/turtle", body=disk),
        LogDraft(Operation.REGISTER, DOC, "text/turtle", text),
    ]
    with pytest.raises(MetadataError):
        provider.append(drafts[::-1])
    provider.append(drafts[:1])
    provider.append(drafts[1:])
    provider.catch_up()
    assert provider.documents() == ((DOC, 1),) and "Disk" in provider.schema.classes


def test_apply_log_makes_provider_equal(provider: Provider, follower: Provider) -> None:
    provider.append([registered("host.rdf"), registered("host.rdf", OTHER), LogDraft(Operation.REMOVE, DOC)])
    provider.catch_up()
    entries = provider.log.read(0)
    assert follower.apply(entries[:2]).position == 2
    with pytest.raises(InputError, match="missing"):
        follower.apply(entries[3:])
    assert follower.apply(entries).position == 4
    assert follower.apply(entries) == follower.apply([])
    assert follower.log.read(0) == entries and follower.documents() == provider.documents()
    assert follower.id != provider.id and follower.id == follower.id


def test_apply_different_log_is_rejected(provider: Provider, follower: Provider) -> None:
    """Already applied entries are skipped, unless they differ from the applied ones."""
    provider.register(DOC, body("host.rdf"), RDF_XML)
    entries = provider.log.read(0)
    follower.apply(entries)
    follower.register(OTHER, body("host.rdf"), RDF_XML)
    provider.remove(DOC)
    provider.register(DOC, body("host.rdf"), RDF_XML)
    with pytest.raises(InputError, match="different log"):
        follower.apply(provider.log.read(2))
    assert follower.position == 3 and follower.documents() == ((DOC, 2), (OTHER, 2))
    assert follower.apply(provider.log.read(0, 2)).position == 3
    follower.log.trim(3)
    assert follower.apply(provider.log.read(2)).position == 4


def test_apply_inapplicable_entry_is_dead_letter(follower: Provider, new_url: Callable[[], str]) -> None:
    entries = [
        LogEntry(1, Operation.REGISTER, DOC, RDF_XML, body("host.rdf")),
        SCHEMA.at(2),
        LogEntry(3, Operation.SCHEMA, "", "text/turtle", b"nonsense"),
        LogEntry(4, Operation.REGISTER, DOC, RDF_XML, body("host.rdf")),
        LogEntry(5, Operation.REGISTER, DOC, RDF_XML, b"<nonsense"),
        LogEntry(6, Operation.REGISTER, "no\x00uri", "no\x00type", b""),
        LogEntry(7, Operation.REMOVE, "relative.rdf", "", b""),
    ]
    assert follower.apply(entries).position == 7
    assert follower.documents() == ((DOC, 2),)
    with open_store(new_url()) as store:
        second = Provider(store)
        for entry in follower.log.read(0):
            second.apply([entry])
        assert second.documents() == ((DOC, 2),) and second.position == 7
        letters = store.dead_letters.read(source="metadata log")
        assert [each.position for each in letters] == [1, 3, 5, 6, 7]
        assert "no schema" in letters[0].reason and letters[2].body == b"<nonsense"


def test_trim_removes_only_applied_entries(provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.append([LogDraft(Operation.REMOVE, DOC)])
    assert provider.log.trim(100) == 2 and provider.log.first() == 3
    with pytest.raises(LogTrimmed, match="begins at position 3"):
        provider.log.read(1)
    assert [each.position for each in provider.log.read(2)] == [3]
    provider.catch_up()
    assert provider.log.trim(100) == 1 and provider.log.first() == 4 and provider.log.read(3) == []


def test_add_rules_names_belong_to_scope(provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.add_rules({"large": ALL}, "ana")
    ours = "search large l register l where l.serverPort > 5"
    assert provider.add_rules({"large": LARGE, "ours": ours}, "a", "a/") == {
        ("a/large", HOST),
        ("a/ours", HOST),
    }
    provider.add_rules({"ours": ours}, "b", "b/")
    provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML)
    assert [each.uri for each in provider.results("b/ours")] == [HOST] and not provider.results("a/ours")
    with pytest.raises(InputError, match="searched by another"):
        provider.remove_rules(["large"])
    assert provider.remove_rules(["ours"], "b/") == ("b/ours",)
    assert provider.remove_rules(["large"]) == ("large",)


def test_set_rules_replaces_all_rules_of_scope(provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    ours = "search large l register l where l.serverPort > 5"
    outcome = provider.set_rules({"large": LARGE, "ours": ours, "all": ALL}, "a", "a/")
    assert outcome.entered == {("a/large", HOST), ("a/ours", HOST), ("a/all", HOST)}
    assert provider.set_rules({"large": LARGE, "ours": ours, "all": ALL}, "a", "a/").entered == set()
    outcome = provider.set_rules({"large": LARGE.replace("64", "100"), "ours": ours}, "a", "a/")
    assert (outcome.entered, outcome.left) == (set(), {("a/large", HOST), ("a/ours", HOST)})
    assert [rule.name for rule in provider.rules()] == ["a/large", "a/ours"]
    with pytest.raises(InputError, match="large"):
        provider.set_rules({"ours": ours}, "a", "a/")
    assert provider.set_rules({}, "a", "a/").left == set() and provider.rules() == ()


def test_set_rules_rule_of_scope_shadows_global_one(provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.add_rules({"large": ALL}, "ana")
    ours = "search large l register l"
    assert provider.set_rules({"ours": ours}, "a", "a/").entered == {("a/ours", HOST)}
    outcome = provider.set_rules({"ours": ours, "large": LARGE.replace("64", "100")}, "a", "a/")
    assert outcome.left == {("a/ours", HOST)}
    assert provider.set_rules({"ours": ours}, "a", "a/").entered == {("a/ours", HOST)}
    with pytest.raises(InputError, match="another owner"):
        provider.set_rules({"large": ALL}, "bob")


def test_closure_has_strongly_referenced_resources(provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    resources = provider.closure([HOST, "http://example.org/doc.rdf#nothing"])
    assert [each.uri for each in resources] == [HOST, INFO]
    assert [each.uri for each in provider.closure([INFO])] == [INFO] and provider.closure([]) == ()
    assert tuple(resource_from_json(resource_to_json(each)) for each in resources) == resources
    assert resource_to_json(resources[0])["document"] == DOC


def test_add_rules_invalid_owner_or_delay_is_rejected(provider: Provider) -> None:
    for add in (provider.add_rules, provider.set_rules):
        for owner, within in (("a\nb", None), ("", None), ("ana", 0), ("ana", 10**12)):
            with pytest.raises(InputError):
                add({"all": ALL}, owner, within=within)
    provider.register(DOC, body("host.rdf"), RDF_XML)
    assert provider.rules() == ()


def test_append_conflicting_schemas_are_not_both_accepted(store: Store, provider: Provider) -> None:
    """The second was checked before the first was loaded, as in two concurrent calls."""
    first, second = (
        SCHEMA.body + f":Disk a rdfs:Class{below} .".encode()
        for below in ("", " ; rdfs:subClassOf :CycleProvider")
    )
    other = Provider(store)
    draft = LogDraft(Operation.SCHEMA, media_type="text/turtle", body=second)
    checked = other.check([draft])
    provider.load_schema(first, "text/turtle")
    with pytest.raises(InputError, match="Disk"):
        store.metadata.transact(lambda work: other._append(work, [draft], checked))
    assert provider.log.head() == 2 and store.dead_letters.count() == 0
