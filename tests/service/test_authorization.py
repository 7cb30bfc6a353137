"""Who may do what."""

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
    found = access.authenticate(access.make("test", scopes, subscriber).secret)
    assert found is not None
    return found


def test_make_first_administrator_of_a_new_store_writes_a_private_file(
    access: Access, tmp_path: Path
) -> None:
    file = tmp_path / "home" / "administrator.token"
    file.parent.mkdir()
    file.write_text("of another store")
    file.chmod(0o644)
    made = access.make_first_administrator(file)
    assert made is not None
    assert (file.read_text(), file.stat().st_mode & 0o777) == (made.secret + "\n", 0o600)
    file.unlink()
    assert access.make_first_administrator(file) is None and not file.exists()
    found = access.authenticate(made.secret)
    assert found is not None
    assert all(found.may(scope) for scope in Scope)
    assert found.may_act_for("anybody")


def test_make_first_administrator_after_other_tokens_makes_one(access: Access, tmp_path: Path) -> None:
    access.make("ana's phone", ["subscribe"], "ana")
    assert access.make_first_administrator(tmp_path / "token") is not None
    assert access.make_first_administrator(tmp_path / "token") is None


def test_make_first_administrator_after_a_revoked_one_makes_none(access: Access, tmp_path: Path) -> None:
    made = access.make("operations", ["administer", "publish"])
    access.revoke(made.token.id)
    assert access.make_first_administrator(tmp_path / "token") is None


def test_make_first_administrator_with_an_unwritable_file_stores_none(access: Access, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="the administrator's token cannot be written"):
        access.make_first_administrator(tmp_path / "file" / "token")
    assert access.make_first_administrator(tmp_path / "token") is not None


def test_caller_of_a_subscriber_may_act_for_no_other(access: Access) -> None:
    ana = caller(access, "subscribe", subscriber="ana")
    assert ana.may(Scope.SUBSCRIBE)
    assert not ana.may(Scope.PUBLISH)
    assert not ana.may(Scope.ADMINISTER)
    assert ana.may_act_for("ana")
    assert not ana.may_act_for("bo")
    assert ana.resolve_subscriber(None) == ana.resolve_subscriber("ana") == "ana"
    with pytest.raises(NotAllowed):
        ana.resolve_subscriber("bo")


def test_caller_with_scope_publish_may_not_act_for_its_name(access: Access) -> None:
    shop = caller(access, "publish", subscriber="ana")
    assert shop.may(Scope.PUBLISH)
    assert not shop.may_act_for("ana")
    with pytest.raises(NotAllowed):
        shop.resolve_subscriber(None)


def test_resolve_subscriber_of_an_administrator_needs_a_name(access: Access) -> None:
    operations = caller(access, "administer")
    assert operations.resolve_subscriber("bo") == "bo"
    with pytest.raises(InputError, match="the subscriber is missing"):
        operations.resolve_subscriber(None)


def test_authenticate_with_an_invalid_token_finds_nobody(access: Access) -> None:
    made = access.make("phone", ["subscribe"], "ana", "1 day")
    assert access.authenticate(made.secret) is not None
    assert access.authenticate(made.secret[:-1]) is None
    assert access.authenticate("") is None
    assert access.revoke(made.token.id)
    assert access.authenticate(made.secret) is None


@pytest.mark.parametrize(
    ("scopes", "subscriber", "lasting"),
    [([], None, None), (["read"], None, None), (["subscribe"], None, None), (["publish"], None, "a while")],
)
def test_make_with_invalid_scopes_raises(
    access: Access, scopes: list[str], subscriber: str | None, lasting: str | None
) -> None:
    with pytest.raises(InputError):
        access.make("test", scopes, subscriber, lasting)
    assert access.list() == []
