"""Keeping a home folder: of which version its store is, a backup while everything runs, and a home folder made of one.

    store.db        the store as of one moment, by SQLite's own backup
    feeds.key       without it the addresses of feeds could not be shown any more
    tidings.toml    the settings, if there are any
    backup.json     what it is

The checkpoint and the index are left out on purpose. They are of another moment than the store; how far everything is
matched stands in the store itself, and a stream without a checkpoint goes on from there.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import tarfile
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from tidings.core.atomic_files import sync
from tidings.errors import InputError, SetupError
from tidings.feeds.outbound.addresses import KEY_FILE
from tidings.service.tidings import make_folder
from tidings.store.database import copy_sqlite, sqlite_url
from tidings.store.encoding import format_instant, utc_now
from tidings.store.migrations import StoreVersion, inspect_store_version

STORE, NOTES, SETTINGS = "store.db", "backup.json", "tidings.toml"
MADE_BY = "a file that tidings store backup has made"
BESIDE = (KEY_FILE, SETTINGS)
"""Files of the home folder that go with the store."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What is in a backup: `matched` is how far the stream had come."""

    taken: str
    version: int
    publications: int
    notifications: int
    matched: int


def read_store_version(home: Path, store_url: str | None) -> StoreVersion:
    """The version of a store; nothing is made or changed."""
    if store_url is None and not (home / STORE).exists():
        raise SetupError("there is no store", where=str(home), hint="another one with --home or --store?")
    return inspect_store_version(store_url or sqlite_url(home / STORE))


def create_backup(home: Path, store_url: str | None, file: Path) -> Backup:
    """Write a backup of a home folder to a file, whole or not at all. Its folder has to be there: where a disk should
    be that is not mounted, backups would fill the one that is.
    """
    path, folder = _sqlite_file(home, store_url), file.absolute().parent
    if not folder.is_dir():
        hint = f"is its disk mounted? if it is to be made: mkdir -p {shlex.quote(str(folder))}"
        raise InputError("there is no such folder", where=str(folder), hint=hint)
    if file.exists():
        raise InputError("there is such a file already", where=str(file), hint="choose another name")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".backup-") as aside:
        copy, draft = Path(aside) / STORE, Path(aside) / "draft.tar"
        counts = copy_sqlite(path, copy)
        made = Backup(format_instant(utc_now()), inspect_store_version(sqlite_url(copy)).store, **counts)
        _write(draft, copy, home, made)
        sync(draft)
        os.link(draft, file)
    sync(folder)
    return made


def _sqlite_file(home: Path, store_url: str | None) -> Path:
    address = store_url or sqlite_url(home / STORE)
    if not address.startswith("sqlite:"):
        raise InputError(
            "this is for stores in a file",
            accepted="sqlite:///path",
            hint="pg_dump --format=custom --file=tidings.dump URL, and keep feeds.key of the home folder",
        )
    path = Path(address.partition("///")[2])
    if not path.exists():
        raise SetupError("there is no store", where=str(path), hint="another one with --home or --store?")
    return path


def _write(draft: Path, copy: Path, home: Path, made: Backup) -> None:
    with _private(draft) as raw:
        with tarfile.open(fileobj=raw, mode="w") as tar:
            notes = json.dumps(asdict(made)).encode()
            entry = tarfile.TarInfo(NOTES)
            entry.size, entry.mode = len(notes), 0o600
            tar.addfile(entry, io.BytesIO(notes))
            tar.add(copy, STORE)
            for name in BESIDE:
                if (home / name).exists():
                    tar.add(home / name, name)
        raw.flush()
        os.fsync(raw.fileno())


def _private(path: Path) -> IO[bytes]:
    """A new file that its owner alone may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def restore_backup(file: Path, home: Path) -> Backup:
    """Make a home folder of a backup; one that has something in it is left alone."""
    if home.exists() and any(home.iterdir()):
        raise InputError(
            "the home folder is not empty", where=str(home), hint="choose another one with --home"
        )
    if not file.exists():
        raise InputError("there is no such file", where=str(file))
    try:
        with tarfile.open(file) as tar:
            made = Backup(**json.loads(_member(tar, NOTES).read()))
            make_folder(home.absolute())
            for name in (*BESIDE, STORE):  # the store last: what is cut off half-way is no home folder
                if name == STORE or name in tar.getnames():
                    _place(home / name, _member(tar, name))
    except tarfile.ReadError as error:  # its message tells of each compression that it is not
        raise InputError("this is no backup", where=str(file), accepted=MADE_BY) from error
    except (tarfile.TarError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError("this is no backup", where=str(file), received=str(error)) from error
    return made


def _member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    """Only what is known by its name is read: an archive may hold paths that lead elsewhere."""
    found = tar.extractfile(name)
    if found is None:
        raise KeyError(name)
    return found


def _place(path: Path, content: IO[bytes]) -> None:
    with _private(path) as file:
        shutil.copyfileobj(content, file)
        file.flush()
        os.fsync(file.fileno())
