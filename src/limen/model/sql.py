"""SQL text to conditions: a conjunction of comparisons between an attribute and a literal.

    conjunction := term (AND term)*
    term        := '(' conjunction ')' | comparison
    comparison  := name op literal | literal op name | name BETWEEN literal AND literal
    op          := < | <= | > | >= | =

sqlglot splits the text; the grammar above reads its tokens. Its parser was not used: it accepts
`price > > 4`, knows far more SQL than a query may say, and its tree drops the positions of
operators. Every token here keeps its place, so each refusal shows where. Numbers stay exact
(int or Decimal) until the attribute's type is known.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import NoReturn

from sqlglot import Token, Tokenizer, TokenType
from sqlglot.errors import TokenError

from limen.model.errors import QueryError

Literal = int | Decimal | str | bool | date | datetime
Condition = tuple[str, Literal]

CONJUNCTION_ONLY = "a query is a conjunction (AND) of ranges"
MAX_DEPTH = 100
MAX_DIGITS = 1000
SHOWN_WIDTH = 96

_COMPARISONS = {
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
    TokenType.EQ: "=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_RESERVED = {
    "AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "LIKE", "ILIKE", "RLIKE", "CASE", "WHEN",
    "SELECT", "WITH", "FROM", "WHERE", "EXISTS", "CAST", "TRY_CAST", "INTERVAL", "ANY", "ALL", "AS",
    "XOR", "TRUE", "FALSE",
}  # fmt: skip
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(\d+[.]?\d*|[.]\d+)([eE][+-]?\d+)?")
_ARITHMETIC = {
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD,
    TokenType.DPIPE, TokenType.AMP, TokenType.PIPE, TokenType.CARET, TokenType.DIV,
}  # fmt: skip


class Name(str):
    """An attribute's name, where a literal is a plain value."""


def parse_where(text: str) -> dict[str, list[Condition]]:
    """The conditions on each attribute, in the order written.

    >>> parse_where("price BETWEEN 40 AND 50.5 AND 'IBM' = symbol")
    {'price': [('>=', 40), ('<=', Decimal('50.5'))], 'symbol': [('=', 'IBM')]}
    >>> parse_where("price > 40 OR price < 10")
    Traceback (most recent call last):
    limen.model.errors.QueryError: OR is not supported: a query is a conjunction (AND) of ranges
      price > 40 OR price < 10
                 ^^
    """
    return _Reader(text).conditions()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        try:
            self._tokens = Tokenizer().tokenize(text)
        except TokenError:
            self._refuse_at("the text ends inside a quote or comment", *self._unclosed())
        self._next = 0
        self._found: dict[str, list[Condition]] = {}

    def conditions(self) -> dict[str, list[Condition]]:
        if not self._tokens:
            self._refuse_at("the text has no condition", 0, max(len(self._text) - 1, 0))
        self._conjunction(0)
        if self._peek() is not None:
            self._refuse_next()
        return self._found

    def _conjunction(self, depth: int) -> None:
        self._term(depth)
        while self._take(TokenType.AND):
            self._term(depth)

    def _term(self, depth: int) -> None:
        token = self._peek()
        if token is None or token.token_type is not TokenType.L_PAREN:
            self._comparison()
            return
        if depth == MAX_DEPTH:
            self._refuse(token, f"more than {MAX_DEPTH} nested parentheses")
        self._next += 1
        self._conjunction(depth + 1)
        if not self._take(TokenType.R_PAREN):
            if self._peek() is None:
                self._refuse(token, "this parenthesis is not closed")
            self._refuse_next()

    def _comparison(self) -> None:
        start = self._next
        left = self._operand()
        token = self._peek()
        if token is not None and token.token_type is TokenType.BETWEEN:
            if not isinstance(left, Name):
                self._refuse(self._tokens[start], "BETWEEN needs an attribute on its left")
            self._next += 1
            low = self._literal()
            if not self._take(TokenType.AND):
                self._refuse_next("BETWEEN needs AND and a second bound")
            self._add(left, [(">=", low), ("<=", self._literal())])
            return
        if token is None or token.token_type not in _COMPARISONS:
            self._refuse_next("a comparison (<, <=, >, >=, =, BETWEEN) is missing")
        operator = _COMPARISONS[token.token_type]
        self._next += 1
        middle = self._next
        right = self._operand()
        if isinstance(left, Name) and isinstance(right, Name):
            self._refuse(
                self._tokens[middle],
                f"comparing an attribute with another ({right}) is not supported: "
                "compare it with a literal (text goes in single quotes)",
            )
        following = self._peek()
        if following is not None and following.token_type in _COMPARISONS:
            self._refuse(following, "chained comparisons are not supported: join them with AND")
        if isinstance(left, Name):
            self._add(left, [(operator, right)])
        elif isinstance(right, Name):
            self._add(right, [(_MIRRORED[operator], left)])
        else:
            self._refuse(self._tokens[start], "a comparison needs an attribute on one side")

    def _add(self, name: Name, conditions: list[Condition]) -> None:
        self._found.setdefault(str(name), []).extend(conditions)

    def _literal(self) -> Literal:
        start = self._next
        value = self._operand()
        if isinstance(value, Name):
            self._refuse(self._tokens[start], "BETWEEN needs literal bounds, not an attribute")
        return value

    def _operand(self) -> Name | Literal:
        token = self._peek()
        if token is None:
            self._refuse_next("the text ends where a name or a literal is expected")
        kind, word = token.token_type, token.text.upper()
        following = self._peek(1)
        follows = None if following is None else following.token_type
        if kind in (TokenType.DASH, TokenType.PLUS, TokenType.NUMBER, TokenType.DOT):
            return self._number()
        if kind is TokenType.STRING:
            self._next += 1
            return token.text
        if kind in (TokenType.TRUE, TokenType.FALSE):
            self._next += 1
            return kind is TokenType.TRUE
        if kind is TokenType.IDENTIFIER:
            return self._name(token)
        if word in ("DATE", "TIMESTAMP") and follows is TokenType.STRING:
            self._next += 1
            return self._moment(word, self._advance())
        if word == "CAST" and follows is TokenType.L_PAREN:
            return self._cast()
        if word == "SELECT" or (kind is TokenType.L_PAREN and self._is_select(following)):
            self._refuse(token, "subqueries are not supported")
        if word == "NULL":
            self._refuse(token, "NULL is not supported: it matches nothing")
        if word in _RESERVED or not _NAME.fullmatch(token.text):
            self._refuse_next()
        return self._name(token)

    def _name(self, token: Token) -> Name:
        following = self._peek(1)
        if following is not None:
            if following.token_type is TokenType.L_PAREN:
                self._refuse(token, "functions are not supported")
            if following.token_type is TokenType.DOT:
                self._refuse(
                    token, "qualified names are not supported: write the attribute's name alone"
                )
        self._next += 1
        return Name(token.text)

    def _number(self) -> int | Decimal:
        first = self._advance()
        last, sign = first, 1
        if first.token_type in (TokenType.DASH, TokenType.PLUS):
            sign = -1 if first.token_type is TokenType.DASH else 1
            digits = self._peek()
            if digits is None or digits.token_type not in (TokenType.NUMBER, TokenType.DOT):
                self._refuse(first, "arithmetic is not supported: a sign needs a number after it")
            last = first = self._advance()
        following = self._peek()
        if first.token_type is TokenType.DOT and following is not None:
            last = self._advance()
        spelled = self._text[first.start : last.end + 1]
        following = self._peek()
        glued = following is not None and following.start == last.end + 1
        if glued and following is not None and _NAME.fullmatch(following.text):
            self._refuse_at("not a number", first.start, following.end)
        if not _NUMBER.fullmatch(spelled):
            self._refuse_at("not a number", first.start, last.end)
        if len(spelled) > MAX_DIGITS:
            self._refuse_at(f"a number of more than {MAX_DIGITS} digits", first.start, last.end)
        if spelled.isdigit():
            return sign * int(spelled)
        try:
            value = Decimal(spelled)
        except InvalidOperation:
            self._refuse_at("the exponent is too large", first.start, last.end)
        return value.copy_negate() if sign < 0 else value  # `-value` would round

    def _cast(self) -> date | datetime:
        whole = self._advance()
        self._next += 1
        text = self._peek()
        if text is None or text.token_type is not TokenType.STRING:
            self._refuse(whole, "CAST is supported for text to DATE or TIMESTAMP only")
        self._next += 1
        target = self._peek(1)
        if not self._take(TokenType.ALIAS) or target is None:
            self._refuse(whole, "CAST needs AS and a type")
        if target.text.upper() not in ("DATE", "TIMESTAMP"):
            self._refuse(target, "CAST is supported to DATE or TIMESTAMP only")
        self._next += 1
        if not self._take(TokenType.R_PAREN):
            self._refuse(whole, "this CAST is not closed")
        return self._moment(target.text.upper(), text)

    def _moment(self, word: str, token: Token) -> date | datetime:
        fraction = re.search(r"[.,](\d+)", token.text)
        if word == "TIMESTAMP" and fraction is not None and len(fraction[1]) > 6:
            self._refuse(
                token, "a TIMESTAMP literal holds microseconds; write finer ones as plain text"
            )
        try:
            if word == "DATE":
                return date.fromisoformat(token.text.strip())
            return datetime.fromisoformat(token.text.strip())
        except ValueError:
            self._refuse(token, f"not an ISO {word.lower()}")

    def _is_select(self, token: Token | None) -> bool:
        return token is not None and token.text.upper() in ("SELECT", "WITH")

    def _peek(self, ahead: int = 0) -> Token | None:
        at = self._next + ahead
        return self._tokens[at] if at < len(self._tokens) else None

    def _advance(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _take(self, kind: TokenType) -> bool:
        token = self._peek()
        if token is None or token.token_type is not kind:
            return False
        self._next += 1
        return True

    def _refuse_next(self, otherwise: str | None = None) -> NoReturn:
        """Refuse the next token by what it is, or else for the reason given."""
        token = self._peek()
        if token is None:
            end = len(self._text.rstrip())
            self._refuse_at(otherwise or "the text ends too early", end, end)
        kind, word = token.token_type, token.text.upper()
        if word in ("OR", "XOR", "NOT", "IN"):
            self._refuse(token, f"{word} is not supported: {CONJUNCTION_ONLY}")
        if kind is TokenType.NEQ:
            self._refuse(token, f"{token.text} is not supported: {CONJUNCTION_ONLY}")
        if kind is TokenType.L_PAREN and self._is_select(self._peek(1)):
            self._refuse(token, "subqueries are not supported")
        if word in _RESERVED - {"AND", "BETWEEN", "AS", "TRUE", "FALSE"}:
            self._refuse(token, f"{word} is not supported")
        if kind in _ARITHMETIC:
            self._refuse(token, f"arithmetic ({token.text}) is not supported")
        self._refuse(token, otherwise or "this is not expected here")

    def _refuse(self, token: Token, reason: str) -> NoReturn:
        self._refuse_at(reason, token.start, token.end)

    def _refuse_at(self, reason: str, start: int, end: int) -> NoReturn:
        """Refuse with the line of the text and carets under its characters start..end."""
        line_start = self._text.rfind("\n", 0, start) + 1
        line_end = self._text.find("\n", start)
        line = self._text[line_start : len(self._text) if line_end < 0 else line_end]
        begin, width = start - line_start, min(end, line_start + len(line)) - start + 1
        if len(line) > SHOWN_WIDTH:
            cut = max(0, min(begin - SHOWN_WIDTH // 2, len(line) - SHOWN_WIDTH))
            line, begin = line[cut : cut + SHOWN_WIDTH], begin - cut
        line = "".join(c if c.isprintable() else " " for c in line)
        carets = "^" * max(1, min(width, SHOWN_WIDTH - begin))
        raise QueryError(f"{reason}\n  {line}\n  {' ' * begin}{carets}")

    def _unclosed(self) -> tuple[int, int]:
        quotes = [match.start() for match in re.finditer("['\"/]", self._text)]
        for at in reversed(quotes[-10:]):
            try:
                Tokenizer().tokenize(self._text[:at])
            except TokenError:
                continue
            return at, at
        return quotes[-1], quotes[-1]
