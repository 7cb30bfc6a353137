"""Commands for operators: `serve`, `run`, `doctor`, `config`, `store`, `token`, `segments`."""
