"""Types of attributes by one name each: databases, UML tools and people have many."""

from __future__ import annotations

import re

_NAMES = {
    "string": "string str text char varchar nvarchar nchar character unicode unicodetext estring clob uuid",
    "integer": "integer int long short byte bigint smallint tinyint biginteger smallinteger eint elong serial",
    "real": "real float double decimal numeric number bigdecimal edouble efloat money",
    "boolean": "boolean bool eboolean bit",
    "date": "date localdate edate",
    "time": "time localtime",
    "datetime": "datetime timestamp instant localdatetime offsetdatetime zoneddatetime timestamptz",
    "bytes": "bytes binary blob bytea varbinary largebinary",
}
_KNOWN = {each: name for name, spelled in _NAMES.items() for each in spelled.split()}
_LENGTH = re.compile(r"\([^()]*\)$")
_FOREIGN = re.compile(r"\A(?:EA[A-Za-z]*_|.*[#.:/])", re.DOTALL)


def type_name(written: str | None) -> str | None:
    """`varchar(40)`, `String` and `EString` are `string`; what nobody knows stays as it was written."""
    plain = _LENGTH.sub("", written.strip()).strip() if written else ""
    if not plain:
        return None
    return _KNOWN.get(plain.lower()) or _KNOWN.get(_FOREIGN.sub("", plain).lower()) or plain
