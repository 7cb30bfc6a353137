"""Section 4 of paper 001: documents as in figure 1, and rules of the four types of figure 10.

Each document has a cycle provider and information about its computer. With rules of the types OID, PATH and JOIN, the
provider of each document matches exactly one rule, and each rule matches at most one provider. Of the rules of type
COMP, a given share matches each document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from tidings.metadata.provider.provider import DocumentSource

NAMESPACE = "http://example.org/servers#"
DOCUMENTS = "http://example.org/documents/"
RDF_XML = "application/rdf+xml"

SCHEMA = f"""@prefix : <{NAMESPACE}> .
@prefix md: <https://tidings.dev/metadata#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:CycleProvider a rdfs:Class .
:ServerInformation a rdfs:Class .
:serverHost a rdf:Property ; rdfs:domain :CycleProvider ; rdfs:range xsd:string .
:serverPort a rdf:Property ; rdfs:domain :CycleProvider ; rdfs:range xsd:integer .
:synthValue a rdf:Property ; rdfs:domain :CycleProvider ; rdfs:range xsd:integer .
:serverInformation a rdf:Property ; rdfs:domain :CycleProvider ; rdfs:range :ServerInformation ;
    md:reference md:strong .
:memory a rdf:Property ; rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
:cpu a rdf:Property ; rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
""".encode()

_DOCUMENT = """<?xml version="1.0" encoding="UTF-8"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="http://example.org/servers#">
  <s:CycleProvider rdf:ID="host">
    <s:serverHost>pirates.uni-passau.de</s:serverHost>
    <s:serverPort>{port}</s:serverPort>
    <s:synthValue>{value}</s:synthValue>
    <s:serverInformation>
      <s:ServerInformation rdf:ID="info" s:memory="{memory}" s:cpu="600"/>
    </s:serverInformation>
  </s:CycleProvider>
</rdf:RDF>
"""


class Type(Enum):
    """The types of figure 10."""

    OID = "OID"
    COMP = "COMP"
    PATH = "PATH"
    JOIN = "JOIN"


_BEGIN = "search CycleProvider c register c where"
_RULES = {
    Type.OID: f"{_BEGIN} c = <{DOCUMENTS}{{}}.rdf#host>",
    Type.COMP: f"{_BEGIN} c.synthValue > {{}}",
    Type.PATH: f"{_BEGIN} c.serverInformation.memory = {{}}",
    Type.JOIN: f"{_BEGIN} c.serverHost contains 'uni-passau.de'"
    " and c.serverInformation.cpu = 600 and c.serverInformation.memory = {}",
}
_SPARQL = {
    Type.OID: f"SELECT ?c {{{{ VALUES ?c {{{{ <{DOCUMENTS}{{}}.rdf#host> }}}} ?c a s:CycleProvider }}}}",
    Type.COMP: "SELECT ?c {{ ?c a s:CycleProvider ; s:synthValue ?v FILTER (xsd:integer(?v) > {}) }}",
    Type.PATH: "SELECT ?c {{ ?i s:memory '{}' . ?c s:serverInformation ?i ; a s:CycleProvider }}",
    Type.JOIN: "SELECT ?c {{ ?i s:memory '{}' ; s:cpu '600' . ?c s:serverInformation ?i ; a s:CycleProvider ;"
    " s:serverHost ?h FILTER CONTAINS(?h, 'uni-passau.de') }}",
}


@dataclass(frozen=True)
class Rules:
    """A rule base of one type, and matching documents. Each matches a `share` of the rules of type COMP."""

    type: Type
    size: int
    share: float = 0.1

    @property
    def matched(self) -> int:
        """Return the number of rules that match a document."""
        return round(self.share * self.size) if self.type is Type.COMP else 1

    def names(self) -> Iterator[str]:
        return (f"r{number}" for number in range(self.size))

    def texts(self) -> dict[str, str]:
        """Return the rules by name, in the rule language."""
        return {f"r{number}": _RULES[self.type].format(number) for number in range(self.size)}

    def queries(self) -> Iterator[str]:
        """Return the rules in SPARQL, over the original triples: without the schema, numbers are texts there."""
        prefixes = f"PREFIX s: <{NAMESPACE}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
        return (f"{prefixes} {_SPARQL[self.type].format(number)}" for number in range(self.size))

    def document(self, number: int, port: int = 5874) -> DocumentSource:
        """Return the document that the rule with this number matches."""
        value = self.matched if self.type is Type.COMP else 0
        body = _DOCUMENT.format(port=port, value=value, memory=number)
        return DocumentSource(f"{DOCUMENTS}{number}.rdf", body.encode(), RDF_XML)

    def documents(self, count: int, seed: int = 1) -> list[DocumentSource]:
        """Return documents spread over the rule base; each seed gives others in another order."""
        most = max(self.size, count) if self.type is Type.COMP else self.size
        chosen = np.random.default_rng(seed).permutation(most)[:count]
        return [self.document(int(number)) for number in chosen]
