"""`python -m tidings` is the `tidings` command."""

from tidings.interfaces.cli.main import main

main()
