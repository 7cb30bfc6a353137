"""Fuzz targets: one for each parser of untrusted bytes or text.

python -m fuzz --seconds 3600       all targets, coverage-guided where Atheris is installed
python -m fuzz --list               their names
python -m fuzz --only xpath gql     some of them
"""
