"""Kinds of publications: the protocol that each implements, and the registry that everything else asks.

    kind_of("application/xml").decode(body, "application/xml")     the readable form of a publication
    LANGUAGES["xpath"].compile(context)                            the plan of a subscription

Events, documents and graphs are the built-in kinds, each a package with a module `kind`. A further one is a
subclass of `Kind` in any importable module. It is registered by its address, `module:attribute`, so that
worker processes of Spark can load it as well:

    register("my_kinds.csv_rows:CSV_ROWS")                  in a program
    TIDINGS_KINDS=my_kinds.csv_rows:CSV_ROWS tidings serve  for the command line
    [project.entry-points."tidings.kinds"]                  for an installed package
    csv_rows = "my_kinds.csv_rows:CSV_ROWS"

Jobs on Spark carry the addresses of further kinds to their tasks: the module has to be importable there.
Reasons are in docs/decisions/0045-kinds.md.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.atoms import Atoms, AtomShape
from tidings.core.text import escape_html
from tidings.errors import InputError, PublicationError, SetupError
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.taxonomy import Taxonomy
from tidings.model import Publication, Reason

if TYPE_CHECKING:  # slow to import, and not needed by programs that only publish
    from tidings.matching.compiler.language import Language
    from tidings.reference_data.enrichment import Added, Enrichment

JSON = "application/json"

BUILT_IN = ("tidings.events.kind:EVENTS", "tidings.documents.kind:DOCUMENTS", "tidings.graphs.kind:GRAPHS")
ENTRY_POINTS = "tidings.kinds"
VARIABLE = "TIDINGS_KINDS"
"""Environment variable with the addresses of further kinds, separated by commas."""

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]


class Claims(NamedTuple):
    """Facts that a publication states about itself: its id, the source that issued the id, and its audience."""

    id: str | None = None
    source: str | None = None
    audience: str | None = None


class Part(NamedTuple):
    """One of several publications in a body."""

    media_type: str
    body: bytes


class Example(NamedTuple):
    """The text of a subscription, and a description of it."""

    text: str
    asks: str


@dataclass(frozen=True, slots=True)
class LanguageGuide:
    """A subscription language as people meet it: in forms, in hints and in the titles of feeds.

    `about` names the publications. `begins` and `prologue` are regular expressions without case: how texts begin, and
    the part that titles of feeds leave out. Without `begins`, no hint leads to the language. `noun` completes the
    hint "an XPath? the language is xpath". Texts that begin as those of an `is_distinctive` language can be nothing
    else. `synonyms` are hints by other names for the language.
    """

    name: str
    title: str
    about: str
    examples: Sequence[Example] = ()
    noun: str = ""
    begins: str | None = None
    is_distinctive: bool = False
    prologue: str | None = None
    synonyms: Mapping[str, str] = field(default_factory=dict)


class Rehearsal(NamedTuple):
    """Publications and subscriptions that match some of them: matching them compiles all kernels."""

    language: str
    texts: Sequence[str]
    media_type: str
    bodies: Sequence[bytes]


class Explanation(NamedTuple):
    """Why a publication matches; `bindings` are the values of a pattern's variables, in languages that have some."""

    because: tuple[Reason, ...]
    bindings: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PublicationSummary:
    """Title, link, text and date of a publication, for feeds.

    The values are as published, not sanitized yet. `description` and `content` are HTML; the first valid date
    of `dates` counts.
    """

    title: str | None = None
    link: str | None = None
    description: str | None = None
    content: str | None = None
    dates: tuple[str, ...] = ()
    creators: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


_USUAL_NAMES = {
    "title": ("title", "name", "headline", "subject", "label"),
    "link": ("link", "url", "href"),
    "description": ("summary", "description"),
    "date": ("updated", "modified", "published", "date", "time"),
}


def summarize_fields(fields: Mapping[str, Sequence[str]], content: str) -> PublicationSummary:
    """Summarize a publication by the names that fields usually have; `content` is its HTML."""

    def values(usual: str) -> list[str]:
        return [value for name in _USUAL_NAMES[usual] for value in fields.get(name, ())]

    def first(usual: str) -> str | None:
        return next((value for value in values(usual) if value.strip()), None)

    description = first("description")
    return PublicationSummary(
        title=first("title"),
        link=first("link"),
        description=escape_html(description) if description else None,
        content=content,
        dates=tuple(values("date")),
    )


def _no_enrichment() -> Enrichment:
    from tidings.reference_data.enrichment import Enrichment  # noqa: PLC0415 - see above

    return Enrichment(())


@dataclass(frozen=True, slots=True)
class Environment:
    """Data with which publications are decoded and matched.

    `paths` are those that subscriptions test, by the shape of atoms; nothing else needs decoding. `id_field`
    is the path of the ids of events. Without `allow_labels`, publications that name an audience are rejected.
    """

    paths: Mapping[AtomShape, Collection[str]] = field(default_factory=dict)
    schema: EventSchema | None = None
    id_field: str | None = None
    enrichment: Enrichment = field(default_factory=_no_enrichment)
    taxonomy: Callable[[], Taxonomy] = Taxonomy
    allow_labels: bool = True


@dataclass(frozen=True, slots=True)
class DecodedPublications:
    """Publications as atoms, their ids (null where they have none), and the rejected ones by their place.

    `added` are the rows of reference tables that publications are matched with, by place. `plain` are
    publications that are matched without them, since they would become too large.
    """

    atoms: Atoms
    ids: Any
    rejects: Sequence[tuple[int, PublicationError]] = ()
    added: Mapping[int, list[Added]] = field(default_factory=dict)
    plain: Sequence[tuple[int, PublicationError]] = ()

    @property
    def problems(self) -> Sequence[tuple[int, PublicationError]]:
        """Everything that becomes a dead letter."""
        return [*self.rejects, *self.plain]


class Evaluator(ABC):
    """One publication in its readable form, evaluated by the definition of matching: the specification."""

    @abstractmethod
    def matches(self, language: str, text: str) -> bool:
        """Return whether the publication satisfies a subscription."""

    @abstractmethod
    def explain(self, language: str, text: str) -> Explanation | None:
        """Explain why the publication satisfies a subscription. Without reasons, or None, it does not."""


class Reader(ABC):
    """Decodes publications of a kind in an environment."""

    @abstractmethod
    def decode(self, media_type: str, buffer: Bytes, starts: Integers, ends: Integers) -> DecodedPublications:
        """Decode the publications `buffer[starts[i]:ends[i]]` to atoms; a rejected one has none."""

    @abstractmethod
    def read(self, body: bytes, media_type: str, added: Sequence[Added] = ()) -> Evaluator:
        """Decode one publication to its readable form, with rows of reference tables."""

    def find_added(self, body: bytes, media_type: str) -> Sequence[Added]:
        """Find the rows of reference tables that belong to a publication."""
        return ()


class Kind(ABC):
    """A kind of publications: media types, decoding, subscription languages, evaluation.

    Subclasses define the class attributes without a default and the abstract methods; the rest is for kinds
    with more to offer.
    """

    name: str
    """Singular noun, for people."""
    shape: AtomShape
    """Layout of its atoms. Kinds of one shape share access paths; languages keep their subscriptions apart."""
    media_types: Sequence[str]
    """Media types of single publications, as the journal keeps them."""
    languages: Sequence[str]
    """Names of the languages whose subscriptions may match. Several kinds may share a language."""

    containers: Sequence[str] = ()
    """Further media types, whose bodies `split` always divides."""
    line_types: Mapping[str, str] = {}
    """Media types of bodies with a publication on each line, and the media type of such a line."""
    suffixes: Mapping[str, str] = {}
    """Media types of files by the end of their names."""
    titles: Mapping[str, str] = {}
    """Names of media types for people, in the order in which a form offers them."""
    sample: Part | None = None
    """A publication without content, which warms up workers."""
    is_quick: bool = False
    """Whether a body of a few kilobytes is validated in microseconds."""
    has_id_field: bool = False
    """Whether a field of the publication may hold its id: see `find_id`."""

    @abstractmethod
    def language(self, name: str) -> Language:
        """Return the compiler of one of `languages`. Called lazily: compilers are slow to import."""

    def guide(self, name: str) -> LanguageGuide:
        """Return the guide to one of `languages`: its title, examples and hints."""
        return LanguageGuide(name, name, f"{self.name}s")

    def generate_examples(self, name: str, schema: EventSchema) -> Iterable[Example]:
        """Generate texts of one of `languages` from a schema that has none of the names in the guide's examples."""
        return ()

    def rehearse(self) -> Rehearsal | None:
        """Return publications and subscriptions to match ahead of the first real ones; None if nothing is compiled."""
        return None

    @abstractmethod
    def decode(self, body: bytes, media_type: str, schema: EventSchema | None = None) -> Any:
        """Decode a body to its readable form; raise PublicationError if it cannot be decoded."""

    @abstractmethod
    def open(self, environment: Environment) -> Reader:
        """Prepare decoding and evaluation in an environment."""

    def check(self, body: bytes, media_type: str, schema: EventSchema | None = None) -> Claims:
        """Validate a body before it goes into the journal; return the facts that it states about itself."""
        self.decode(body, media_type, schema)
        return Claims()

    def find_id(self, body: bytes, id_field: str) -> str | None:
        """Return the id in a field of a publication, if it has one there."""
        return None

    def split(self, body: bytes, media_type: str, base: str | None = None) -> Sequence[Part] | None:
        """Divide a body that holds several publications; None if it is a single one."""
        return None

    def may_split(self, media_type: str) -> bool:
        """Return whether bodies of a media type may hold several publications."""
        return media_type in self.containers

    def resolve(self, body: bytes, media_type: str, base: str) -> Part:
        """Resolve the relative references of a publication against a base IRI."""
        accepted = ", ".join(each for kind in kinds() if kind.has_base for each in kind.media_types)
        raise InputError("this media type has no base", received=media_type, accepted=accepted)

    @property
    def has_base(self) -> bool:
        """Whether `resolve` does something."""
        return type(self).resolve is not Kind.resolve

    def refuse_empty(self, body: bytes) -> None:
        """Raise DecodeProblem for a body that is empty by mistake."""
        return

    def summarize(self, publication: Publication, about: Sequence[str] = ()) -> PublicationSummary:
        """Summarize a publication for feeds; `about` names resources that the reader is interested in."""
        return PublicationSummary()

    def sniff(self, text: str) -> str | None:
        """Guess the media type of a pasted text; None if it does not look like this kind."""
        return None


class Registry:
    """The kinds of this process. Built-in and installed ones are loaded on first use."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._kinds: dict[str, Kind] = {}
        self._by_media_type: dict[str, Kind] = {}
        self._by_language: dict[str, list[Kind]] = {}
        self._is_loaded = False

    def register(self, *addresses: str) -> None:
        """Load kinds by their addresses, `module:attribute`; those that are known already are left alone."""
        with self._lock:
            self._load()
            for address in addresses:
                self._add(address)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        with self._lock:
            self._load()
            return tuple(self._kinds.values())

    def find(self, media_type: str) -> Kind | None:
        """Return the kind of a media type, containers and lines included."""
        with self._lock:
            self._load()
            return self._by_media_type.get(media_type)

    def of_language(self, name: str) -> Sequence[Kind]:
        """Return the kinds whose publications a language is about."""
        with self._lock:
            self._load()
            return tuple(self._by_language.get(name, ()))

    @property
    def languages(self) -> tuple[str, ...]:
        with self._lock:
            self._load()
            return tuple(self._by_language)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of all kinds that are not built in: other processes register them."""
        with self._lock:
            self._load()
            return tuple(address for address in self._kinds if address not in BUILT_IN)

    def _load(self) -> None:
        if self._is_loaded:
            return
        self._is_loaded = True
        installed = [each.value for each in entry_points(group=ENTRY_POINTS)]
        named = [each.strip() for each in os.environ.get(VARIABLE, "").split(",")]
        for address in (*BUILT_IN, *installed, *filter(None, named)):
            self._add(address)

    def _add(self, address: str) -> None:
        if address in self._kinds:
            return
        kind = _load_kind(address)
        accepted = (*kind.media_types, *kind.containers, *kind.line_types)
        for media_type in accepted:
            registered = self._by_media_type.get(media_type)
            if registered is not None:
                raise SetupError(
                    f"two kinds of publications have the media type {media_type}",
                    where=address,
                    received=f"{registered.name}, {kind.name}",
                )
        self._kinds[address] = kind
        self._by_media_type.update(dict.fromkeys(accepted, kind))
        for language in kind.languages:
            self._by_language.setdefault(language, []).append(kind)


def _load_kind(address: str) -> Kind:
    module, _, attribute = address.partition(":")
    try:
        kind = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as problem:
        raise SetupError(
            "a kind of publications cannot be loaded",
            where=address[:200],
            received=str(problem)[:200],
            accepted="module:attribute, importable by every process",
            hint=f"kinds are named in {VARIABLE} and by entry points in the group {ENTRY_POINTS}",
        ) from problem
    if not isinstance(kind, Kind):
        raise SetupError("not a kind of publications", where=address, received=type(kind).__name__)
    return kind


_REGISTRY = Registry()


def register(*addresses: str) -> None:
    """Register kinds by their addresses, `module:attribute`."""
    _REGISTRY.register(*addresses)


def kinds() -> tuple[Kind, ...]:
    """Return all kinds, the built-in ones first."""
    return _REGISTRY.kinds


def registered_addresses() -> tuple[str, ...]:
    """Return the addresses of further kinds, for worker processes."""
    return _REGISTRY.addresses


def find_kind(media_type: str) -> Kind | None:
    """Return the kind that a media type belongs to, if it is known."""
    return _REGISTRY.find(media_type)


def kind_of(media_type: str) -> Kind:
    """Return the kind that a media type belongs to. All publications in the journal have registered kinds."""
    kind = _REGISTRY.find(media_type)
    if kind is None:
        raise unknown_media_type(media_type)
    return kind


def unknown_media_type(media_type: str) -> PublicationError:
    """Return the problem of a publication whose kind is not registered in this process."""
    message, accepted = "no kind of publications has this media type", ", ".join(media_types())
    return PublicationError(message, received=media_type[:200], accepted=accepted)


def kinds_of_language(name: str) -> Sequence[Kind]:
    """Return the kinds whose publications a language is about."""
    return _REGISTRY.of_language(name)


def shares_shape(kind: Kind) -> bool:
    """Return whether an index may hold subscriptions in other languages for publications of the same shape."""
    languages = {name for each in kinds() if each.shape is kind.shape for name in each.languages}
    return not languages <= set(kind.languages)


def media_types() -> tuple[str, ...]:
    """Return the media types of single publications, of all kinds."""
    return tuple(media_type for kind in kinds() for media_type in kind.media_types)


def find_media_type(name: str) -> str | None:
    """Return the media type of a file by its name, if it is known."""
    lower = name.lower()
    suffixes = ((end, media_type) for kind in kinds() for end, media_type in kind.suffixes.items())
    return next((media_type for end, media_type in suffixes if lower.endswith(end)), None)


def media_type_of(name: str) -> str:
    """Return the media type of a file by its name; files with unknown names are taken for events."""
    return find_media_type(name) or JSON


class _Languages(Mapping[str, "Language"]):
    """The subscription languages of all kinds, by name."""

    def __getitem__(self, name: str) -> Language:
        for kind in kinds_of_language(name):
            return kind.language(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_REGISTRY.languages)

    def __len__(self) -> int:
        return len(_REGISTRY.languages)

    def __contains__(self, name: object) -> bool:
        return name in _REGISTRY.languages


LANGUAGES: Mapping[str, Language] = _Languages()
