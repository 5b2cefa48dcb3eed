#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plain English in documents, help texts, comments of headers, and opening comments of tests and examples:
- A sentence has at most 25 words. Inline code counts as one. After a colon, three or more items
  separated by commas count as the longest of them. A list item or a table cell begins a new sentence.
- A line of Markdown holds one sentence, or a part of one, in at most 120 columns. Tables are exempt.
- The words of BANNED do not occur.

Code blocks and headings are skipped. In a comment, a line with a gap of two spaces is a row of a table.
The opening comment of a test or an example says what the file is for. The check reads no other comment there.
Without arguments the check reads all of these in the tree. With arguments it reads those files.
"""
import collections
import os
import re

import tree

WORDS_MAX = 25
COLUMNS_MAX = 120
PAGES = re.compile(r"(README|CONTRIBUTING|docs/(internals/)?[^/]+|hostfiles/README|(examples|tests)/(\w+/)?README)\.md")
HELP = "launcher/model/settings/option.def"
HEADERS = re.compile(r"(launcher|runtime)/.+\.h")
OPENINGS = re.compile(r"(examples|tests)/.+\.(c|cc|h|py|sh|sbatch)")
# The comment after the line with the licence: of C, of Python, of a shell.
OPENING = re.compile(r"\A/\*[^\n]*\*/\n/\*(?P<c>.*?)\*/|\A(?:#[^\n]*\n)*\"\"\"(?P<py>.*?)\"\"\"|"
                     r"\A(?:#![^\n]*\n)?# SPDX[^\n]*\n(?P<sh>(?:#(?!SBATCH)[^\n]*\n)+)", re.DOTALL)

WHO_AFTER = "and|or|but|for|of|by|from|with|is|are|was|were|only|not|than"
BANNED = [  # (what, instead); lower case
    (r"(?<!there )\b(?:is|are|was) no (?!longer|more|way|need|such|doubt|matter)", "'is not a', 'does not have'"),
    (r"\bput(?:s|ting)? aside\b", "'blacklist', 'cool down'"),
    (r"\bstrikes?\b", "'failure'"),
    (r"(?<!nothing )\b(?:is|are|be|was|were) left\b(?! (?:to|of|out|alone|behind|empty|open|unset|unchanged|as|unread|with))",
     "'drained', 'removed', 'remains'"),
    (r"\bt(?:ake|akes|aken|aking|ook) back\b", "'withdraw', 'reclaim', 'remove'"),
    (r"\b(?:is|are|was|were|be|been|being|when|if|as|unless|not) told\b|\btold (?:by|to|with|of|in)\b",
     "who tells it: 'hvdrun sends', 'reports', 'receives'"),
    (r"\bmade[- ]up\b", "'simulated host', 'invented'"),
    (r"\bstands\b(?! (?:for|in for|out|by|alone|up|down|still))", "'is', 'is written'"),
    (r"\bin one piece\b", "'whole', 'at once'"),
    (r"\bthe life of (?:it|one)\b", "name the thing"),
    (r"\bby (?:itself|themselves|himself)\b", "'alone', 'on its own', 'without help'"),
    (rf"(?:^|[;:(] ?|\b(?:{WHO_AFTER}) )who\b", "the noun: 'a process that'"),
]
BANNED = [(re.compile(pattern), instead) for pattern, instead in BANNED]

ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|No|Fig|incl|[A-Z])|\.\.)\.$")
# The end of a sentence, and what may begin the next one: also "-1: ", an identifier, and names that have no capital.
NEXT = r"[A-Z0-9`\x00]|-1: |[a-z]\w*(?:_|\(|->|/|\.[a-z])\w|(?:hvdrun|libhvd|libssh2|sshd|srun) "
END = re.compile(rf"[.!?][)\"'*_]*\s+(?=[\"'(*_`\[]*(?:{NEXT}))")
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"!?\[([^\]\[]*)\](?:\([^)]*\)|\[[^\]]*\])")
BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
ROW = re.compile(r"^.*\S {2,}\S.*$", re.MULTILINE)
WORD = re.compile(r"[^\s]*[A-Za-z0-9\x00][^\s]*")
CODE_WORD = "\x00"  # what inline code becomes

Piece = collections.namedtuple("Piece", "line text")  # a paragraph, a list item or a cell


def plain(text):
    """Without markup: code is one word, a link is its text."""
    text = CODE.sub(CODE_WORD, text)
    text = LINK.sub(r"\1", text)
    text = re.sub(r"<https?://[^>]*>|https?://\S+", CODE_WORD, text)
    return re.sub(r"</?\w+[^>]*>", " ", text)


def sentences(text):
    """(offset, sentence) of plain text."""
    start = 0
    for match in END.finditer(text):
        if ABBREVIATION.search(text[:match.start() + 1]):
            continue
        yield start, text[start:match.end()].rstrip()
        start = match.end()
    if text[start:].strip():
        yield start, text[start:].strip()


def length(sentence):
    """Words of a sentence. What follows a colon and has three items or more counts as its longest item."""
    sentence = " ".join(sentence.split())
    head, colon, tail = sentence.partition(": ")
    items = re.split(r"[,;] ", tail)
    if colon and len(items) >= 3:
        return max(len(WORD.findall(head)), *(len(WORD.findall(item)) for item in items))
    return len(WORD.findall(sentence))


def paragraphs(lines):
    """The pieces of a Markdown page, and the lines that hold prose: (number, line)."""
    pieces, prose, open_piece, fence, comment = [], [], [], None, False

    def close():
        if open_piece:
            pieces.append(Piece(open_piece[0][0], "\n".join(line for _, line in open_piece)))
            open_piece.clear()

    for number, line in enumerate(lines, 1):
        bare = re.sub(r"^\s*>\s?", "", line)
        if fence:
            fence = None if re.match(rf"\s*{fence}\s*$", bare) else fence
            continue
        mark = re.match(r"\s*(```+|~~~+)", bare)
        if mark or comment or "<!--" in bare:
            close()
            fence = mark[1] if mark else None
            comment = not mark and "-->" not in bare
        elif not bare.strip() or bare.startswith("#") or re.match(r"^\s*\[[^\]]+\]: ", bare):
            close()
        elif bare.lstrip().startswith("|"):
            close()
            if not set(bare) <= set("|-: "):
                cells = re.split(r"(?<!\\)\|", CODE.sub(lambda m: m[0].replace("|", "/"), bare.strip().strip("|")))
                pieces.extend(Piece(number, cell.strip()) for cell in cells)
        elif re.match(r"^ {4,}\S", bare) and not open_piece and not BULLET.match(bare):
            pass  # an indented block
        else:
            if BULLET.match(bare):
                close()
            text = BULLET.sub("", bare)
            prose.append((number, line, text))
            open_piece.append((number, text))
    close()
    return pieces, prose


def check_piece(name, piece, findings):
    text = plain(piece.text)
    for offset, sentence in sentences(text):
        line = piece.line + text.count("\n", 0, offset)
        words = length(sentence)
        shown = " ".join(sentence.replace(CODE_WORD, "`..`").split())
        if words > WORDS_MAX:
            findings.add(name, line, f"{words} words in a sentence: {shown[:70]} ...")
        lower = " ".join(sentence.lower().split())
        question = lower.endswith("?")
        for pattern, instead in BANNED:
            match = pattern.search(lower)
            if match and not (question and "who" in match[0]):
                around = lower[max(0, match.start() - 25):match.end() + 25].replace(CODE_WORD, "`..`")
                findings.add(name, line, f"'{match[0].strip()}' in '{around}': write {instead}")


def check_page(name, text, findings):
    pieces, prose = paragraphs(text.splitlines())
    for piece in pieces:
        check_piece(name, piece, findings)
    for number, line, bare in prose:
        whole = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", CODE_WORD, line)
        if len(line) > COLUMNS_MAX and " " in line[:COLUMNS_MAX].strip() and len(whole) > COLUMNS_MAX // 2:
            findings.add(name, number, f"{len(line)} columns")
        if len(list(sentences(plain(bare)))) > 1:
            findings.add(name, number, "more than one sentence on a line")


def check_help(name, text, findings):
    """The last string of each OPTION() and FIXED()."""
    text = tree.blank_comments(text)
    for match in re.finditer(r'"((?:[^"\\]|\\.)*)"\s*\)\s*$', text, re.MULTILINE):
        piece = Piece(tree.line_of(text, match.start()), match[1].replace('\\"', '"').replace("\\n", " "))
        check_piece(name, piece, findings)


def check_comment(name, line, body, findings):
    """`body` begins on `line`, and has no marks of a comment any more."""
    body = ROW.sub(lambda row: re.sub(r"(?<=\S) {2,}(?=\S)", "\f", row[0]) + "\f", body)  # the end of a cell
    start = 0
    for part in re.split(r"(\f|\n\s*\n|\n(?=\s*[-*] )|\n(?= {3,}\S))", body):  # blank lines, items, indented blocks
        if part.strip("\f \n") and not part.startswith("    "):
            check_piece(name, Piece(line + body.count("\n", 0, start), BULLET.sub("", part)), findings)
        start += len(part)


def check_header(name, text, findings):
    for match in re.finditer(r"/\*(.*?)\*/", text, re.DOTALL):
        if "SPDX" not in match[1]:
            body = re.sub(r"^[ \t]*\*[ \t]?", "", match[1], flags=re.MULTILINE)
            check_comment(name, tree.line_of(text, match.start()), body, findings)


def check_opening(name, text, findings):
    match = OPENING.match(text)
    if not match:
        return
    lines, item = [], False
    for line in re.sub(r"^(?:[ \t]*\*|#)[ \t]?", "", match[match.lastgroup], flags=re.MULTILINE).split("\n"):
        item = bool(BULLET.match(line)) or item and line.startswith("  ")
        lines.append("" if line.startswith("  ") and not item else line)  # an indented block is not prose
    check_comment(name, tree.line_of(text, match.start(match.lastgroup)), "\n".join(lines), findings)


def check(name, text, findings):
    kinds = {".md": check_page, ".def": check_help, ".h": check_header}
    kind = check_opening if OPENINGS.fullmatch(name) else kinds.get(os.path.splitext(name)[1])
    if kind:
        kind(name, text, findings)


if __name__ == "__main__":
    parser = tree.arguments(__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="read these (default: documents and help texts)")
    options = parser.parse_args()
    source = tree.Tree(options.root)
    found = tree.Findings()
    kinds = [re.compile(re.escape(HELP)), PAGES, HEADERS, OPENINGS]
    names = options.files or [name for name in source.files if any(kind.fullmatch(name) for kind in kinds)]
    for each in names:
        try:
            check(each, source.text(each) if each in source.files else open(each, encoding="utf-8").read(), found)
        except OSError as error:
            found.add(each, 0, error.strerror)
    found.finish(f"{len(names)} files")
