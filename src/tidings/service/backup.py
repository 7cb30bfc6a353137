"""Backup and restore of a home folder, and the version of its store.

    store.db        a consistent snapshot of the store, by SQLite's online backup
    feeds.key       the key without which the addresses of feeds cannot be read
    tidings.toml    the settings, if there are any
    backup.json     time, version and counts

The checkpoint and the index are left out, because they belong to another moment than the store. The store itself
records how far the journal is matched, and a stream without a checkpoint continues from there.
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
MADE_BY = "a file written by tidings store backup"
BESIDE = (KEY_FILE, SETTINGS)
"""Files of the home folder that go with the store."""


@dataclass(frozen=True, slots=True)
class Backup:
    """Summary of a backup; `matched` is the position up to which the stream had matched the journal."""

    taken: str
    version: int
    publications: int
    notifications: int
    matched: int


def read_store_version(home: Path, store_url: str | None) -> StoreVersion:
    """Read the version of a store, without creating or changing anything."""
    if store_url is None and not (home / STORE).exists():
        raise _no_store(home)
    return inspect_store_version(store_url or sqlite_url(home / STORE))


def create_backup(home: Path, store_url: str | None, file: Path) -> Backup:
    """Write a backup of a home folder to a file, atomically.

    The folder of the file has to exist: if a disk is not mounted, backups would fill the one below it.
    """
    path, folder = _sqlite_file(home, store_url), file.absolute().parent
    if not folder.is_dir():
        hint = f"mount its disk, or create it: mkdir -p {shlex.quote(str(folder))}"
        raise InputError("there is no such folder", where=str(folder), hint=hint)
    if file.exists():
        raise InputError("the file exists already", where=str(file), hint="choose another name")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".backup-") as temporary:
        copy, draft = Path(temporary) / STORE, Path(temporary) / "draft.tar"
        counts = copy_sqlite(path, copy)
        backup = Backup(format_instant(utc_now()), inspect_store_version(sqlite_url(copy)).store, **counts)
        _write_archive(draft, copy, home, backup)
        sync(draft)
        os.link(draft, file)
    sync(folder)
    return backup


def _sqlite_file(home: Path, store_url: str | None) -> Path:
    address = store_url or sqlite_url(home / STORE)
    if not address.startswith("sqlite:"):
        raise InputError(
            "only stores in SQLite can be backed up this way",
            accepted="sqlite:///path",
            hint="run pg_dump --format=custom --file=tidings.dump URL, and keep feeds.key of the home folder",
        )
    path = Path(address.partition("///")[2])
    if not path.exists():
        raise _no_store(path)
    return path


def _no_store(place: Path) -> SetupError:
    return SetupError("there is no store", where=str(place), hint="choose another one with --home or --store")


def _write_archive(draft: Path, copy: Path, home: Path, backup: Backup) -> None:
    with _create_private(draft) as raw:
        with tarfile.open(fileobj=raw, mode="w") as tar:
            notes = json.dumps(asdict(backup)).encode()
            entry = tarfile.TarInfo(NOTES)
            entry.size, entry.mode = len(notes), 0o600
            tar.addfile(entry, io.BytesIO(notes))
            tar.add(copy, STORE)
            for name in BESIDE:
                if (home / name).exists():
                    tar.add(home / name, name)
        raw.flush()
        os.fsync(raw.fileno())


def _create_private(path: Path) -> IO[bytes]:
    """Create a file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def restore_backup(file: Path, home: Path) -> Backup:
    """Restore a backup to a new home folder, or to one that is empty."""
    if home.exists() and any(home.iterdir()):
        raise InputError(
            "the home folder is not empty", where=str(home), hint="choose another one with --home"
        )
    if not file.exists():
        raise InputError("there is no such file", where=str(file))
    try:
        with tarfile.open(file) as tar:
            backup = Backup(**json.loads(_open_member(tar, NOTES).read()))
            make_folder(home.absolute())
            for name in (
                *BESIDE,
                STORE,
            ):  # the store last: an interrupted restore leaves no usable home folder
                if name == STORE or name in tar.getnames():
                    _write_file(home / name, _open_member(tar, name))
    except tarfile.ReadError as error:  # its message lists every compression that was tried
        raise InputError("the file is not a backup", where=str(file), accepted=MADE_BY) from error
    except (tarfile.TarError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError("the file is not a backup", where=str(file), received=str(error)) from error
    return backup


def _open_member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    """Open a member by its known name. `extractall` would follow paths that lead outside the folder."""
    content = tar.extractfile(name)
    if content is None:
        raise KeyError(name)
    return content


def _write_file(path: Path, content: IO[bytes]) -> None:
    with _create_private(path) as file:
        shutil.copyfileobj(content, file)
        file.flush()
        os.fsync(file.fileno())
