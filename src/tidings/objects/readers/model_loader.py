"""Loading a model by name: a diagram in a file, or the SQLAlchemy classes of a module."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tidings.core.suggest import did_you_mean
from tidings.errors import InputError, TidingsError
from tidings.objects.model.draft import ModelError
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.readers.plantuml_reader import read_plantuml

PLANTUML_SUFFIXES = (".puml", ".plantuml", ".pu", ".iuml", ".wsd")
XMI_SUFFIXES = (".xmi", ".xml")
UML_SUFFIX = ".uml"
"""Used for XMI by Eclipse, and for PlantUML by others."""

MODEL_FORMS = (
    "a class diagram as PlantUML (.puml) or XMI 2.x (.xmi, .uml), or MODULE:BASE for SQLAlchemy classes"
)


def read_model(spec: str) -> MappedModel:
    """Read the model in a file or module; messages of errors begin with its name."""
    try:
        return _read(spec)
    except ModelError as problem:
        raise problem.named(spec) from None
    except TidingsError as problem:
        if spec in problem.what:
            raise
        raise problem.with_place(f"{spec}: {problem.what}", problem.place) from None


def resolve_model_path(spec: str) -> str:
    """Make paths absolute, so that they do not depend on the working directory; module names stay."""
    if Path(spec).is_file():
        return str(Path(spec).absolute())
    module, colon, name = spec.rpartition(":")
    is_file = bool(colon) and Path(module).is_file()
    return f"{Path(module).absolute()}:{name}" if is_file else spec


def _read(spec: str) -> MappedModel:
    path = Path(spec)
    if not path.is_file() and ":" in spec:
        from tidings.objects.readers.sqlalchemy_reader import read_sqlalchemy  # noqa: PLC0415 - diagrams do not need it

        module, _, name = spec.rpartition(":")
        return read_sqlalchemy(_get_base(_load_module(module), name, spec))
    if not path.is_file():
        raise InputError(f"no file '{spec}'", accepted=MODEL_FORMS)
    suffix, body = path.suffix.lower(), path.read_bytes()
    if suffix in XMI_SUFFIXES or (
        suffix == UML_SUFFIX and body.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"<")
    ):
        from tidings.objects.readers.xmi_reader import read_xmi  # noqa: PLC0415 - imports lxml

        return read_xmi(body)
    if suffix not in (*PLANTUML_SUFFIXES, UML_SUFFIX):
        hint = f"{spec}:Base reads the classes in it" if suffix == ".py" else None
        raise InputError(f"'{spec}' has no known suffix of a model", accepted=MODEL_FORMS, hint=hint)
    return _read_diagram(body, spec)


def _read_diagram(body: bytes, spec: str) -> MappedModel:
    try:
        text = body.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{spec} is not UTF-8", where=f"byte {error.start}", accepted="UTF-8") from None
    return read_plantuml(text)


def _load_module(name: str) -> ModuleType:
    """Import a module by file, or by name, also from the working directory. This runs the user's program."""
    try:
        return _load_file(Path(name)) if name.endswith(".py") else _import_by_name(name)
    except TidingsError:
        raise
    except Exception as error:  # any exception of the user's program
        received = f"{type(error).__name__}: {error}"
        raise InputError(f"'{name}' cannot be imported", received=received, accepted=MODEL_FORMS) from error


def _import_by_name(name: str) -> ModuleType:
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    return import_module(name)


def _load_file(path: Path) -> ModuleType:
    """Import a file under a module name made from its whole path: two files of one name are two modules."""
    if not path.is_file():
        raise InputError(f"no file '{path}'", accepted=MODEL_FORMS)
    name = f"tidings_model_{path.resolve().as_posix().encode().hex()}"
    module_spec = spec_from_file_location(name, path)
    assert module_spec is not None and module_spec.loader is not None, "files that end with .py have a loader"
    module = module_from_spec(module_spec)
    sys.modules[name] = module  # SQLAlchemy looks there for the names in annotations
    try:
        module_spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _get_base(module: ModuleType, name: str, spec: str) -> Any:
    if not hasattr(module, name):
        hint = did_you_mean(name, [each for each in vars(module) if not each.startswith("_")])
        raise InputError(
            f"'{spec}' has no such name", received=name, accepted="a declarative base", hint=hint
        )
    return getattr(module, name)
