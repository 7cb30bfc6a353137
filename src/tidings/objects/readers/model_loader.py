"""A model, wherever it is written: a diagram in a file, or the classes of a program."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tidings.core.suggest import did_you_mean
from tidings.errors import InputError, TidingsError
from tidings.objects.model.problems import ModelError
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.readers.plantuml_reader import read_plantuml

PLANTUML_SUFFIXES = (".puml", ".plantuml", ".pu", ".iuml", ".wsd")
XMI_SUFFIXES = (".xmi", ".xml")
UML_SUFFIX = ".uml"
"""Eclipse calls XMI so, and some call PlantUML so."""

MODEL_FORMS = (
    "a class diagram as PlantUML (.puml) or XMI 2.x (.xmi, .uml), or MODULE:BASE of SQLAlchemy's classes"
)


def read_model(what: str) -> MappedModel:
    """The model that a word names; what is wrong with it begins with that word."""
    try:
        return _read(what)
    except ModelError as problem:
        raise problem.named(what) from None
    except TidingsError as problem:
        if what in problem.what:
            raise
        raise problem.moved(f"{what}: {problem.what}", problem.place) from None


def resolve_model_path(what: str) -> str:
    """The same word for whoever stands in another folder. Modules that are found by their names stay as they are."""
    if Path(what).is_file():
        return str(Path(what).absolute())
    module, colon, name = what.rpartition(":")
    is_file = bool(colon) and Path(module).is_file()
    return f"{Path(module).absolute()}:{name}" if is_file else what


def _read(what: str) -> MappedModel:
    path = Path(what)
    if not path.is_file() and ":" in what:
        from tidings.objects.readers.sqlalchemy_reader import read_sqlalchemy  # noqa: PLC0415 - diagrams do not need it

        module, _, name = what.rpartition(":")
        return read_sqlalchemy(_named(_module(module), name, what))
    if not path.is_file():
        raise InputError(f"no file '{what}'", accepted=MODEL_FORMS)
    suffix, body = path.suffix.lower(), path.read_bytes()
    if suffix in XMI_SUFFIXES or (
        suffix == UML_SUFFIX and body.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"<")
    ):
        from tidings.objects.readers.xmi_reader import read_xmi  # noqa: PLC0415 - with it comes lxml

        return read_xmi(body)
    if suffix not in (*PLANTUML_SUFFIXES, UML_SUFFIX):
        hint = f"{what}:Base reads the classes in it" if suffix == ".py" else None
        raise InputError(f"no idea what is in '{what}'", accepted=MODEL_FORMS, hint=hint)
    return _diagram(body, what)


def _diagram(body: bytes, what: str) -> MappedModel:
    try:
        text = body.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{what} is not UTF-8", where=f"byte {error.start}", accepted="UTF-8") from None
    return read_plantuml(text)


def _module(name: str) -> ModuleType:
    """A module by its name, looked for here, too, or by its file. It is the user's own program: it runs."""
    try:
        return _loaded(Path(name)) if name.endswith(".py") else _imported(name)
    except TidingsError:
        raise
    except Exception as error:  # whatever somebody's program raises when it is imported
        received = f"{type(error).__name__}: {error}"
        raise InputError(f"'{name}' cannot be imported", received=received, accepted=MODEL_FORMS) from error


def _imported(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return import_module(name)


def _loaded(path: Path) -> ModuleType:
    """Its name is made from the whole path: two files of one name are two modules."""
    if not path.is_file():
        raise InputError(f"no file '{path}'", accepted=MODEL_FORMS)
    name = f"tidings_model_{path.resolve().as_posix().encode().hex()}"
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "files that end with .py have a loader"
    module = module_from_spec(spec)
    sys.modules[name] = module  # SQLAlchemy looks there for the names in annotations
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _named(module: ModuleType, name: str, what: str) -> Any:
    if not hasattr(module, name):
        hint = did_you_mean(name, [each for each in vars(module) if not each.startswith("_")])
        raise InputError(
            f"'{what}' has no such name", received=name, accepted="a declarative base", hint=hint
        )
    return getattr(module, name)
