"""What a server needs of its machine."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import resource
from tidings.interfaces.http.serving import allow_many_files
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
print(allow_many_files(), resource.getrlimit(resource.RLIMIT_NOFILE)[0], allow_many_files())
"""


def test_a_server_may_have_as_many_clients_as_the_machine_lets_it() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    raised, found, again = map(int, done.stdout.split())
    assert raised == found == again > 256
