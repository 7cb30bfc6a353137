"""A PostgreSQL server for benchmarks, and a small archive in the format of the ACL Anthology, so that no test needs
the real one.
"""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.metadata_places import PostgreSQL, postgresql
from tests.support.packages import Unavailable

FIRST = ("Dan", "Joyce", "Natalie", "Zoë", "Li Wei")
LAST = ("Jurafsky", "Chai", "Schluter", "O'Brien", "Müller")


@pytest.fixture(scope="session")
def server() -> Iterator[PostgreSQL]:
    try:
        with postgresql() as place:
            yield place
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two collections of thirty papers each, and a folder, which is skipped."""
    path = tmp_path_factory.mktemp("anthology") / "papers.tar.gz"
    rng = random.Random(5)
    with tarfile.open(path, "w:gz") as files:
        folder = tarfile.TarInfo("xml")
        folder.type = tarfile.DIRTYPE
        files.addfile(folder)
        for name in ("2020.one", "2021.two"):
            body = _collection(name, rng).encode()
            member = tarfile.TarInfo(f"xml/{name}.xml")
            member.size = len(body)
            files.addfile(member, io.BytesIO(body))
    return path


def _collection(name: str, rng: random.Random) -> str:
    papers = "\n".join(_paper(name, number, rng) for number in range(1, 31))
    meta = "<meta><booktitle>Proceedings</booktitle></meta>"
    return f'<collection id="{name}"><volume id="1">{meta}\n{papers}\n</volume></collection>'


def _paper(name: str, number: int, rng: random.Random) -> str:
    authors = "".join(
        f"<author><first>{rng.choice(FIRST)}</first><last>{rng.choice(LAST)}</last></author>"
        for _ in range(rng.randint(2, 4))
    )
    return f"""<paper id="{number}">
      <title>The <fixed-case>{rng.choice("XYZ")}</fixed-case> of &amp; "{number}"</title>{authors}
      <pages>{number * 8}–{number * 8 + 7}</pages><abstract>{"Long. " * 30}</abstract>
      <url hash="{rng.getrandbits(32):08x}">{name}.{number}</url><year>20{rng.choice((20, 21))}</year>
      <attachment type="{rng.choice(("Software", "Dataset"))}">{name}.{number}.zip</attachment><video href=""/>
    </paper>"""
