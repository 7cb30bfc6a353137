"""Metadata for browsing: subclasses, references of both kinds, and dangling references."""

from __future__ import annotations

from tidings.metadata.provider.provider import Provider

TURTLE = "text/turtle"
DOC, OTHER = "http://example.org/doc.ttl", "http://example.org/other.ttl"
HOST, INFO, DATA = f"{DOC}#host", f"{DOC}#info", f"{OTHER}#data"

PREFIXES = """@prefix : <http://example.org/servers#> . @prefix md: <https://tidings.dev/metadata#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
SCHEMA = (
    PREFIXES
    + """
:Thing a rdfs:Class .
:Provider a rdfs:Class ; rdfs:subClassOf :Thing .
:CycleProvider a rdfs:Class ; rdfs:subClassOf :Provider .
:DataProvider a rdfs:Class ; rdfs:subClassOf :Provider .
:Both a rdfs:Class ; rdfs:subClassOf :CycleProvider, :DataProvider .
:Information a rdfs:Class .
:name a rdf:Property ; rdfs:domain :Thing ; rdfs:range xsd:string .
:open a rdf:Property ; rdfs:domain :Thing ; rdfs:range xsd:boolean .
:memory a rdf:Property ; rdfs:domain :Information ; rdfs:range xsd:integer .
:information a rdf:Property ; rdfs:domain :Provider ; rdfs:range :Information ; md:reference md:strong .
:partners a rdf:Property ; rdfs:domain :Provider ; rdfs:range :Provider ; md:reference md:weak ; md:several true .
"""
)
DOCUMENTS = {
    DOC: """
<#host> a :CycleProvider ; :name "<b>pirates</b> & co" ; :open true ; :information <#info> ;
    :partners <http://example.org/other.ttl#data>, <#none> .
<#info> a :Information ; :memory 92 .""",
    OTHER: """
<#data> a :DataProvider ; :name "data" ;
    :partners <http://example.org/doc.ttl#host>, <http://example.org/doc.ttl#info>, <#both> .
<#both> a :Both ; :partners <http://example.org/doc.ttl#host> .""",
}


def fill(provider: Provider) -> None:
    provider.load_schema(SCHEMA.encode(), TURTLE)
    for uri, text in DOCUMENTS.items():
        provider.register(uri, (PREFIXES + text).encode(), TURTLE)
