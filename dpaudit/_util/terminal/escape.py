"""Make text from user code and files safe to show: names, exception messages, cells.

Such text may hold terminal escapes, line breaks that forge a log line, characters that reorder what is read, or lines that a CI
service obeys. Everything here shows such characters as Python escapes and changes nothing else.
"""

from __future__ import annotations

import re
import unicodedata

# Control, surrogate, unassigned (with the code points that XML forbids) and line or paragraph separators.
_HIDDEN = ("Cc", "Cs", "Cn", "Zl", "Zp")
# GitHub obeys lines that begin with "::" (after white space), and "##[" anywhere in a line; Azure Pipelines obeys "##vso[".
_COMMAND_LINE = re.compile(r"^([ \t]*):(?=:)", re.MULTILINE)
_COMMAND_MARK = re.compile(r"##(?=\[|vso\[)")


def visible(text: str) -> str:
    r"""Return the text with every invisible character as its Python escape; line breaks and tabs stay.

    >>> visible("red \x1b[31m and reversed \u202e")
    'red \\x1b[31m and reversed \\u202e'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char in "\n\t" or not _hidden(char) else _escaped(char) for char in text)


def one_line(text: str) -> str:
    r"""Return the same on one line.

    >>> one_line("count\n::error::forged")
    'count\\n::error::forged'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(char) if _hidden(char) else char for char in text)


def inert(text: str) -> str:
    r"""Return the text with nothing in it that a CI service takes for a command.

    >>> inert("  ::add-mask::a\nsee a::b and ##[error]")
    '  \\x3a:add-mask::a\nsee a::b and #\\x23[error]'
    """
    return _COMMAND_MARK.sub(r"#\\x23", _COMMAND_LINE.sub(r"\1\\x3a", text))


def _hidden(char: str) -> bool:
    if char.isascii():
        return not " " <= char <= "~"
    category = unicodedata.category(char)
    # Format characters reorder or hide text, except the joiners that some scripts and emoji need.
    return category in _HIDDEN or (category == "Cf" and char not in "\u200c\u200d")


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
