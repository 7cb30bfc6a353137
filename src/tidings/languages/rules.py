"""The language of metadata: rules, and queries that are asked once.

    search CycleProvider c register c where c.serverHost contains 'uni-passau.de' and c.serverInformation.memory > 64

`parse` gives the tree of a rule and `parse_query` that of a query, or a problem that underlines the column; `show` is
the way back. The parser is written by hand, a method for each line of the grammar, because rules are loaded by
the million:

    rule       = search "register" variable ["where" either]
    query      = search ["register" variable] ["where" either] ["select" path {"," path}]
                 ["order" "by" path ["asc" | "desc"] {"," path ["asc" | "desc"]}] ["limit" number]
    search     = "search" name variable {"," name variable}
    either     = both {"or" both}
    both       = comparison {"and" comparison}
    comparison = "(" either ")" | operand ("=" | "!=" | "<" | "<=" | ">" | ">=" | "contains") operand
    operand    = path | string | number | date | "true" | "false" | "<" uri ">"
    path       = variable {"." name ["?"]}
"""

from __future__ import annotations

from tidings.languages import rules_refusals as refusals
from tidings.languages.other_languages import hints_elsewhere
from tidings.languages.readable import refuse_unreadable
from tidings.languages.rules_conditions import ConditionReader, Limits
from tidings.languages.rules_shown import show
from tidings.languages.rules_tree import Condition, Path, Query, Rule, Searched
from tidings.limits import limits_from

__all__ = ["DEFAULT", "Limits", "parse", "parse_query", "show"]

DEFAULT = limits_from("TIDINGS_RULES_LIMITS", Limits)

_AFTER_SEARCH = ("search", "register", "where", "and", "or")


@hints_elsewhere("rules")
def parse(text: str, limits: Limits = DEFAULT) -> Rule:
    """The tree of a rule's text."""
    refuse_unreadable(text, limits.length)
    return _Parser(text, limits).rule()


def parse_query(text: str, limits: Limits = DEFAULT) -> Query:
    """The tree of a query's text. Without `register` it asks for its only variable."""
    refuse_unreadable(text, limits.length)
    return _Parser(text, limits).query()


class _Parser(ConditionReader):
    def rule(self) -> Rule:
        searched = self.search()
        if self.word() != "register":
            hint = f"write register {searched[0].variable} before 'where'" if self.word() == "where" else None
            raise refusals.expected("',' or 'register'", self.tokens, self.at, hint)
        register = self.register(searched)
        where = self.where()
        if self.words[self.at]:
            raise self.unread(where)
        return Rule(searched, register, where)

    def unread(self, where: Condition | None) -> Exception:
        """What stands behind a whole rule."""
        word, place = self.word(), self.tokens.place(self.at)
        if word in ("select", "order", "limit"):
            return refusals.only_in_queries(word, place)
        if where is None:
            return refusals.expected("'where' or the end", self.tokens, self.at)
        return refusals.behind(self.tokens, self.at, "the end")

    def query(self) -> Query:
        searched = self.search()
        of = self.asked(searched)
        where = self.where()
        select = self.select()
        order = self.order()
        limit = self.limit()
        if self.words[self.at]:
            wanted = "'select', 'order by', 'limit' or the end"
            if where is not None and not select and not order and limit is None:
                raise refusals.behind(self.tokens, self.at, wanted)
            raise refusals.expected(wanted, self.tokens, self.at, "in this order")
        return Query(searched, of, where, select, order, limit)

    def search(self) -> tuple[Searched, ...]:
        if not self.words[0]:
            raise refusals.empty(self.tokens.text)
        if self.word() != "search":
            raise refusals.no_search(self.tokens)
        found: dict[str, Searched] = {}
        while not found or self.words[self.at] == ",":
            self.at += 1
            one = self.searched()
            if one.variable in found:
                raise refusals.declared_twice(one.variable, self.tokens.place(self.at - 1))
            found[one.variable] = one
            if len(found) > self.limits.variables:
                raise refusals.too_many("variables", self.limits.variables, self.tokens.place(self.at - 1))
        return tuple(found.values())

    def searched(self) -> Searched:
        start = self.at
        if self.word() in _AFTER_SEARCH:
            raise refusals.expected("a class or a rule", self.tokens, start)
        extension = self.name("a class or a rule")
        variable = self.variable()
        return Searched(extension, variable, self.span(start))

    def register(self, searched: tuple[Searched, ...]) -> str:
        self.at += 1
        register = self.variable()
        known = [each.variable for each in searched]
        if register not in known:
            raise refusals.unknown_registered(register, known, self.tokens.place(self.at - 1))
        if self.words[self.at] == ",":
            raise refusals.several_registered(self.tokens.place(self.at))
        return register

    def asked(self, searched: tuple[Searched, ...]) -> str:
        if self.word() == "register":
            return self.register(searched)
        if len(searched) > 1:
            known = [each.variable for each in searched]
            raise refusals.not_registered(known, self.tokens.place(self.at - 1))
        return searched[0].variable

    def where(self) -> Condition | None:
        if self.word() != "where":
            return None
        self.at += 1
        return self.either()

    def select(self) -> tuple[Path, ...]:
        if self.word() != "select":
            return ()
        found: list[Path] = []
        while not found or self.words[self.at] == ",":
            self.at += 1
            found.append(self.path())
        return tuple(found)

    def order(self) -> tuple[tuple[Path, bool], ...]:
        if self.word() != "order":
            return ()
        self.at += 1
        if self.word() != "by":
            raise refusals.expected("'by'", self.tokens, self.at)
        found: list[tuple[Path, bool]] = []
        while not found or self.words[self.at] == ",":
            self.at += 1
            path, falls = self.path(), self.word() == "desc"
            self.at += falls or self.word() == "asc"
            found.append((path, falls))
        return tuple(found)

    def limit(self) -> int | None:
        if self.word() != "limit":
            return None
        self.at += 1
        word = self.words[self.at]
        if not word.isdecimal() or len(word) > 10 or not 1 <= int(word) < 2**31:
            raise refusals.no_limit(self.tokens, self.at)
        self.at += 1
        return int(word)
