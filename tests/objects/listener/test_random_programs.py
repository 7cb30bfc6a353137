"""A listener on the sessions of random programs has the effects of the definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, Integer, String
from sqlalchemy.orm import Session

from tests.objects.declarative_models import Program, declare_model
from tests.objects.engines import in_memory
from tests.objects.histories import Expected, History, to_expected
from tests.support.strategies.effort import share
from tests.support.strategies.models import models
from tidings import notice
from tidings.objects.model.class_model import Model
from tidings.objects.notices import ObjectChange
from tidings.objects.propagation import Limits
from tidings.objects.readers.sqlalchemy_reader import read_sqlalchemy

MODELS = models().filter(lambda model: any(each.implicit or each.propagates for each in model.associations))
LIMITS = st.builds(Limits, st.none() | st.integers(0, 3), st.none() | st.integers(1, 3))


@share(2)
@given(MODELS, st.data())
def test_listener_on_sqlite_agrees_with_definition(model: Model, data: st.DataObject) -> None:
    check_agreement(in_memory(), model, data)


@settings(share(6), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(MODELS, st.data())
def test_listener_on_postgresql_agrees_with_definition(
    engine_on_server: Engine, model: Model, data: st.DataObject
) -> None:
    check_agreement(engine_on_server, model, data)


def check_agreement(engine: Engine, model: Model, data: st.DataObject) -> None:
    numbered, subclasses = (
        data.draw(st.booleans()),
        [name for name, cls in model.classes.items() if cls.parents],
    )
    in_one_table = data.draw(st.sets(st.sampled_from(subclasses))) if subclasses else set()
    base, classes = declare_model(model, Integer if numbered else String, in_one_table)
    mapped, limits = read_sqlalchemy(base), data.draw(LIMITS)
    keys: list[Any] = list(range(1, 100)) if numbered else [f"k'{number}" for number in range(1, 100)]
    base.metadata.create_all(engine)
    try:
        with Session(engine, autoflush=False) as session:
            program, changes = Program(session, classes, model, data.draw), list[ObjectChange]()
            notice(session, base, report=changes.extend, watches=program.watches, limits=limits)
            history = History(mapped, program, keys, limits)
            for expected in transactions(session, history, data.draw):
                assert Counter(to_expected(changes, int if numbered else str)) == Counter(expected)
                changes.clear()
    finally:
        base.metadata.drop_all(engine)


def transactions(session: Session, history: History, draw: st.DrawFn) -> Iterator[list[Expected]]:
    """Yield the expected changes after each commit; some steps are rolled back to a savepoint."""
    expected: list[Expected] = []
    for _ in range(draw(st.integers(8, 16))):
        is_rolled_back = draw(st.integers(0, 4)) == 0
        before = history.graph, dict(history.values)
        savepoint = session.begin_nested() if is_rolled_back else None
        history.step(draw)
        if savepoint is not None:
            savepoint.rollback()
            history.graph, history.values = before
        else:
            expected += history.expected
        if draw(st.booleans()):
            session.commit()
            yield expected
            expected = []
    session.commit()
    yield expected
