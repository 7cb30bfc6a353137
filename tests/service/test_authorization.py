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
    found = access.who(access.make("test", scopes, subscriber).secret)
    assert found is not None
    return found


def test_begin_of_a_new_store_writes_the_token_for_its_owner_alone(access: Access, tmp_path: Path) -> None:
    file = tmp_path / "home" / "administrator.token"
    file.parent.mkdir()
    file.write_text("of another store")
    file.chmod(0o644)
    made = access.begin(file)
    assert made is not None
    assert (file.read_text(), file.stat().st_mode & 0o777) == (made.secret + "\n", 0o600)
    file.unlink()
    assert access.begin(file) is None and not file.exists()
    found = access.who(made.secret)
    assert found is not None
    assert all(found.may(scope) for scope in Scope)
    assert found.stands_for("anybody")


def test_the_administrator_begins_also_where_others_had_tokens_before(access: Access, tmp_path: Path) -> None:
    access.make("ana's phone", ["subscribe"], "ana")
    assert access.begin(tmp_path / "token") is not None
    assert access.begin(tmp_path / "token") is None


def test_an_administrator_who_was_revoked_does_not_begin_again(access: Access, tmp_path: Path) -> None:
    made = access.make("operations", ["administer", "publish"])
    access.revoke(made.token.id)
    assert access.begin(tmp_path / "token") is None


def test_begin_where_the_token_cannot_be_written_keeps_none(access: Access, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="the administrator's token cannot be written"):
        access.begin(tmp_path / "file" / "token")
    assert access.begin(tmp_path / "token") is not None


def test_a_subscriber_stands_for_nobody_else(access: Access) -> None:
    ana = caller(access, "subscribe", subscriber="ana")
    assert ana.may(Scope.SUBSCRIBE)
    assert not ana.may(Scope.PUBLISH)
    assert not ana.may(Scope.ADMINISTER)
    assert ana.stands_for("ana")
    assert not ana.stands_for("bo")
    assert ana.acting_as(None) == ana.acting_as("ana") == "ana"
    with pytest.raises(NotAllowed):
        ana.acting_as("bo")


def test_a_publisher_is_no_subscriber_even_with_a_name(access: Access) -> None:
    shop = caller(access, "publish", subscriber="ana")
    assert shop.may(Scope.PUBLISH)
    assert not shop.stands_for("ana")
    with pytest.raises(NotAllowed):
        shop.acting_as(None)


def test_an_administrator_says_for_whom(access: Access) -> None:
    operations = caller(access, "administer")
    assert operations.acting_as("bo") == "bo"
    with pytest.raises(InputError, match="for whom"):
        operations.acting_as(None)


def test_nobody_is_who_has_no_good_token(access: Access) -> None:
    made = access.make("phone", ["subscribe"], "ana", "1 day")
    assert access.who(made.secret) is not None
    assert access.who(made.secret[:-1]) is None
    assert access.who("") is None
    assert access.revoke(made.token.id)
    assert access.who(made.secret) is None


@pytest.mark.parametrize(
    ("scopes", "subscriber", "lasting"),
    [([], None, None), (["read"], None, None), (["subscribe"], None, None), (["publish"], None, "a while")],
)
def test_tokens_that_make_no_sense(
    access: Access, scopes: list[str], subscriber: str | None, lasting: str | None
) -> None:
    with pytest.raises(InputError):
        access.make("test", scopes, subscriber, lasting)
    assert access.list() == []
