"""What every language asks of a text before it reads it."""

from __future__ import annotations

from tidings.errors import Place, SyntaxProblem


def refuse_unreadable(text: str, longest: int) -> None:
    """Refuse a text that is too long, or that has half a character in it: what no bytes stand for cannot be kept."""
    if len(text) > longest:
        received, accepted = f"{len(text):,} characters", f"at most {longest:,}"
        raise SyntaxProblem("the text is too long", received=received, accepted=accepted)
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise _half_character(text, problem.start) from None


def _half_character(text: str, start: int) -> SyntaxProblem:
    shown = text.encode(errors="replace").decode()
    place, received = Place.at(shown, start), f"U+{ord(text[start]):04X}"
    return SyntaxProblem("half a character", place=place, received=received, accepted="Unicode text")
