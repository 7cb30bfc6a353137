"""JSONTestSuite, with the strict decoder and the columnar decoder."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest

from tests.conformance.suites import json_suite, unexplained
from tests.support.oracles.json_decoders import same_as_definition
from tidings.errors import DecodeProblem
from tidings.parsers.strict_json import parse_value

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("conformance")]

REFUSED = {
    "y_object_duplicated_key.json": "a name that comes twice: strict JSON (RFC 8259, section 4) refuses it",
    "y_object_duplicated_key_and_value.json": "likewise",
}
"""Valid JSON that is rejected on purpose."""


@cache
def cases() -> dict[str, bytes]:
    """Return the cases by name; `y_` must be accepted, `n_` must be rejected, and `i_` is up to the parser."""
    text = (json_suite() / "data" / "parsing.js").read_text(encoding="utf-8")
    listed = json.loads(re.sub(r"^.*?export default ", "", text, flags=re.DOTALL).rstrip().rstrip(";"))
    return {case["name"]: case["input"].encode("utf-8", "surrogatepass") for case in listed}


def _is_accepted(body: bytes) -> bool:
    try:
        parse_value(body)
    except DecodeProblem:
        return False
    return True


def test_json_suite_has_enough_cases() -> None:
    assert len(cases()) > 250


def test_json_suite_valid_is_accepted_and_invalid_rejected() -> None:
    disagreements = {}
    for name, body in cases().items():
        accepted = _is_accepted(body)
        if (name[0] == "y" and not accepted) or (name[0] == "n" and accepted):
            disagreements[name] = "was accepted" if accepted else "was refused"
    assert not [*unexplained(disagreements, REFUSED)]


def test_json_suite_decoders_agree_on_every_case() -> None:
    bodies = [*cases().values(), *(b'{"a":' + body + b"}" for body in cases().values())]
    same_as_definition(bodies)
