# SPDX-License-Identifier: Apache-2.0
"""The small changes that can be made to one C file. It is read as tokens, not parsed: clang-format has
put blanks around every operator with two operands, which tells `a * b` from `char *b`."""
import hashlib
import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<skip>/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:[^\n\\]|\\\n|\\.)*|\s+)
  | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<number>\d[\w.]*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
         "+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "&": "|", "|": "&", "<<": ">>", ">>": "<<",
         "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "*=": "/=", "/=": "*="}
WORDS = {"true": "false", "false": "true"}
COMPARES = {"<", "<=", ">", ">=", "==", "!=", "!"}
OPENING, CLOSING = {"(", "[", "{"}, {")", "]", "}"}
CONDITIONS = {"if", "while", "for", "switch"}
NO_STATEMENT = CONDITIONS | {"else", "do", "return", "case", "default", "goto", "struct", "enum", "union",
                             "const", "static", "unsigned", "int", "char", "long", "void", "extern", "typedef"}
QUIET_CALL = re.compile(r"log_\w+|assert|_?[Ss]tatic_assert")  # what they say is no behaviour
FREE_CALL = re.compile(r"free|\w+_(free|destroy)")             # only the sanitizers notice


@dataclass(frozen=True)
class Change:
    """One change: `text[start:end]` becomes `new`. The id holds as long as the line is the same."""
    id: str
    file: str
    line: int
    kind: str
    start: int
    end: int
    new: str

    def apply(self, text):
        gone = text[self.start:self.end]
        return text[:self.start] + self.new + "\n" * (gone.count("\n") - self.new.count("\n")) + text[self.end:]

    def diff(self, text):
        first, last = text.rfind("\n", 0, self.start) + 1, text.find("\n", self.end)
        old = text[first:last]
        new = text[first:self.start] + self.new + text[self.end:last]
        return "\n".join([f"-{line}" for line in old.split("\n")] + [f"+{line}" for line in new.split("\n")])


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


class Reader:
    """Goes over the tokens of a file and collects (start, end, new, kind)."""

    def __init__(self, text):
        self.text = text
        self.tokens = [Token(found.lastgroup, found.group(), found.start(), found.end())
                       for found in TOKEN.finditer(text) if found.lastgroup != "skip"]
        self.partner = self._partners()
        self.found = []

    def _partners(self):
        partner, open_at = {}, []
        for at, token in enumerate(self.tokens):
            if token.text in OPENING:
                open_at.append(at)
            elif token.text in CLOSING and open_at:
                first = open_at.pop()
                partner[first], partner[at] = at, first
        return partner

    def at(self, index):
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def add(self, first, last, new, kind):
        self.found.append((self.tokens[first].start, self.tokens[last].end, new, kind))

    def spaced(self, index):
        token = self.tokens[index]
        return self.text[token.start - 1:token.start].isspace() and self.text[token.end:token.end + 1].isspace()

    def quiet(self):
        """The tokens of logging and assertions, and the heads of `for` loops for ++ and --."""
        quiet, heads = set(), set()
        for at, token in enumerate(self.tokens):
            if self.at(at + 1) == "(" and at + 1 in self.partner:
                inside = range(at, self.partner[at + 1] + 1)
                if token.kind == "word" and QUIET_CALL.fullmatch(token.text):
                    quiet.update(inside)
                elif token.text == "for":
                    heads.update(inside)
        return quiet, heads

    def operators(self, quiet, heads):
        for at, token in enumerate(self.tokens):
            if at in quiet:
                continue
            if token.kind == "number":
                self.number(at)
            elif token.text in WORDS:
                self.add(at, at, WORDS[token.text], "constant")
            elif token.text in SWAPS and self.spaced(at):
                self.add(at, at, SWAPS[token.text], "operator")
                if token.text in "+-" and re.fullmatch(r"1[uU]?", self.at(at + 1)):
                    self.add(at, at + 1, "", "one dropped")
            elif token.text == "!":
                self.add(at, at, "", "not dropped")
            elif token.text in ("++", "--") and at not in heads:
                self.add(at, at, "--" if token.text == "++" else "++", "operator")

    def number(self, at):
        found = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", self.at(at))
        if not found or self.at(at - 1) == "return" or self.at(at - 2) == "return":
            return
        if self.at(at - 1) == "[" and self.at(at + 1) == "]" and self.tokens[at - 3].kind == "word":
            return  # the room of an array: more of it has no effect
        value = int(found.group(1), 16 if found.group(1)[:2] in ("0x", "0X") else 8 if re.match("0[0-7]", found.group(1)) else 10)
        if value < 1 << 31:  # others are factors of hashes and the like
            self.add(at, at, f"{0 if value == 1 else value + 1}{found.group(2)}", "constant")

    def statements(self, quiet, frees):
        for body, token in enumerate(self.tokens):
            if token.text == "{" and self.at(body - 1) == ")" and body in self.partner and not self.inside(body):
                self.body(body + 1, self.partner[body], quiet, frees)

    def inside(self, body):
        return any(self.at(at) == "{" and at < body < self.partner.get(at, 0) for at in self.top_braces)

    def body(self, at, end, quiet, frees):
        while at < end:
            text = self.at(at)
            if text in CONDITIONS and self.at(at + 1) == "(":
                close = self.partner[at + 1]
                if text in ("if", "while"):
                    self.condition(at + 2, close - 1)
                at = close + 1
            elif text in ("{", "}", ";", "else", "do"):
                at += 1
            elif text in ("case", "default") or self.at(at + 1) == ":":
                while self.at(at) != ":":
                    at += 1
                at += 1
            else:
                stop = self.statement_end(at, end)
                self.statement(at, stop, quiet, frees)
                at = stop + 1

    def statement_end(self, at, end):
        while at < end and self.at(at) != ";":
            at = self.partner.get(at, at) + 1 if self.at(at) in OPENING else at + 1
        return at

    def condition(self, first, last):
        if last >= first and not any(self.at(at) in COMPARES for at in range(first, last + 1)):
            old = self.text[self.tokens[first].start:self.tokens[last].end]
            self.add(first, last, f"!({old})", "condition")

    def statement(self, first, stop, quiet, frees):
        words = [self.at(at) for at in range(first, stop)]
        if not words or first in quiet:
            return
        if words[0] == "return":
            self.returned(first, stop, words)
        elif words[0] in ("break", "continue"):
            self.add(first, stop - 1, "", "statement removed")
        elif words[0] not in NO_STATEMENT and not self.declares(first):
            called = self.at(first) if self.at(first + 1) == "(" else ""
            if frees or not FREE_CALL.fullmatch(called):
                self.add(first, stop - 1, "", "statement removed")

    def declares(self, first):
        kinds = [self.tokens[at].kind for at in (first, first + 1)]
        star = self.at(first + 1) == "*" and not self.spaced(first + 1)
        return kinds[0] == "word" and (kinds[1] == "word" or star)

    def returned(self, first, stop, words):
        value = words[1:]
        if not value or value[0] in ("true", "false", "NULL"):
            return
        if value == ["0"]:
            self.add(first + 1, stop - 1, "-1", "return")
        elif not any(word in COMPARES for word in value) or value == ["-", "1"]:
            self.add(first + 1, stop - 1, "0", "return")

    def read(self, frees):
        depth, self.top_braces = 0, []
        for at, token in enumerate(self.tokens):
            if token.text == "{":
                if depth == 0:
                    self.top_braces.append(at)
                depth += 1
            elif token.text == "}":
                depth -= 1
        quiet, heads = self.quiet()
        self.operators(quiet, heads)
        self.statements(quiet, frees)
        return sorted(self.found)


def changes_of(file, text, frees=False):
    """All changes of the C file `file` whose content is `text`; with `frees` also calls that free."""
    result, seen, lines, counts = [], {}, text.split("\n"), {}
    nth_of_line = []
    for content in lines:
        key = content.strip()
        counts[key] = counts.get(key, 0) + 1
        nth_of_line.append(counts[key])
    for start, end, new, kind in Reader(text).read(frees):
        line = text.count("\n", 0, start) + 1
        column = start - text.rfind("\n", 0, start) - 1
        content = lines[line - 1]
        place = (file, content.strip(), nth_of_line[line - 1], kind, column - (len(content) - len(content.lstrip())), new)
        name = hashlib.sha256(repr(place).encode()).hexdigest()[:8]
        if name not in seen:
            seen[name] = True
            result.append(Change(name, file, line, kind, start, end, new))
    return result
