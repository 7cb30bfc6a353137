"""Authorization: scopes, subscribers, and tokens of administrators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.errors import InputError, NotAllowed, SetupError
from tidings.service.authorization import Access, Caller, Scope
from tidings.store.database import sqlite_url
from tidings.store.store import open_store


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    with open_store(sqlite_url(tmp_path / "store.db")) as store:
        yield Access(store)


def caller(access: Access, *scopes: str, subscriber: str | None = None) -> Caller:
    authenticated = access.authenticate(access.make("test", scopes, subscriber).secret)
    assert authenticated is not None
    return authenticated


def test_make_first_administrator_of_new_store_writes_private_file(access: Access, tmp_path: Path) -> None:
    file = tmp_path / "home" / "administrator.token"
    file.parent.mkdir()
    file.write_text("of another store")
    file.chmod(0o644)
    created = access.make_first_administrator(file)
    assert created is not None
    assert (file.read_text(), file.stat().st_mode & 0o777) == (created.secret + "\n", 0o600)
    file.unlink()
    assert access.make_first_administrator(file) is None and not file.exists()
    administrator = access.authenticate(created.secret)
    assert administrator is not None
    assert all(administrator.has_scope(scope) for scope in Scope)
    assert administrator.may_act_for("anybody")


def test_make_first_administrator_after_other_tokens_creates_one(access: Access, tmp_path: Path) -> None:
    access.make("ana's phone", ["subscribe"], "ana")
    assert access.make_first_administrator(tmp_path / "token") is not None
    assert access.make_first_administrator(tmp_path / "token") is None


def test_make_first_administrator_after_revoked_one_creates_none(access: Access, tmp_path: Path) -> None:
    created = access.make("operations", ["administer", "publish"])
    access.revoke(created.token.id)
    assert access.make_first_administrator(tmp_path / "token") is None


def test_make_first_administrator_with_unwritable_file_stores_none(access: Access, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="the administrator's token cannot be written"):
        access.make_first_administrator(tmp_path / "file" / "token")
    assert access.make_first_administrator(tmp_path / "token") is not None


def test_caller_with_subscriber_may_act_for_no_other(access: Access) -> None:
    ana = caller(access, "subscribe", subscriber="ana")
    assert ana.has_scope(Scope.SUBSCRIBE)
    assert not ana.has_scope(Scope.PUBLISH)
    assert not ana.has_scope(Scope.ADMINISTER)
    assert ana.may_act_for("ana")
    assert not ana.may_act_for("bo")
    assert ana.resolve_subscriber(None) == ana.resolve_subscriber("ana") == "ana"
    with pytest.raises(NotAllowed):
        ana.resolve_subscriber("bo")


def test_caller_with_scope_publish_may_not_act_for_its_name(access: Access) -> None:
    shop = caller(access, "publish", subscriber="ana")
    assert shop.has_scope(Scope.PUBLISH)
    assert not shop.may_act_for("ana")
    with pytest.raises(NotAllowed):
        shop.resolve_subscriber(None)


def test_resolve_subscriber_for_administrator_requires_name(access: Access) -> None:
    operations = caller(access, "administer")
    assert operations.resolve_subscriber("bo") == "bo"
    with pytest.raises(InputError, match="the subscriber is missing"):
        operations.resolve_subscriber(None)


def test_authenticate_with_invalid_token_returns_none(access: Access) -> None:
    created = access.make("phone", ["subscribe"], "ana", "1 day")
    assert access.authenticate(created.secret) is not None
    assert access.authenticate(created.secret[:-1]) is None
    assert access.authenticate("") is None
    assert access.revoke(created.token.id)
    assert access.authenticate(created.secret) is None


@pytest.mark.parametrize(
    ("scopes", "subscriber", "expires_in"),
    [([], None, None), (["read"], None, None), (["subscribe"], None, None), (["publish"], None, "a while")],
)
def test_make_token_with_invalid_scopes_raises_input_error(
    access: Access, scopes: list[str], subscriber: str | None, expires_in: str | None
) -> None:
    with pytest.raises(InputError):
        access.make("test", scopes, subscriber, expires_in)
    assert access.list() == []
