"""What is seen while looking around, for machines: the same on the command line and over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.metadata.as_json import to_json

if TYPE_CHECKING:
    from tidings.browsing import ClassSeen, Instances, Link, ResourceSeen


def class_seen(cls: ClassSeen) -> dict[str, Any]:
    return {"class": cls.name, "parents": list(cls.parents), "resources": cls.all, "own": cls.own}


def instances(page: Instances) -> dict[str, Any]:
    found = [{"uri": each.uri, "class": each.cls} for each in page.found]
    return class_seen(page.of) | {"instances": found, "next": page.more}


def resource_seen(seen: ResourceSeen) -> dict[str, Any]:
    return {
        **to_json(seen.resource),
        "references": [_link(each) for each in seen.references],
        "referrers": [_link(each) for each in seen.referrers],
        "next": seen.more,
    }


def _link(link: Link) -> dict[str, Any]:
    return {
        "property": link.property,
        "uri": link.uri,
        "class": link.cls,
        "reference": link.reference.value,
        "leads": link.leads,
    }
