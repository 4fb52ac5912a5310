"""LaTeX to MathML that a browser shows without any network resource; what cannot be converted is shown as source.

The result stands in HTML, where `<math>` needs no namespace. The converter's output is rebuilt from a list of allowed
elements and attributes, so that no text, wherever it came from, can become markup.
"""

from __future__ import annotations

import re
from html import escape, unescape
from typing import TYPE_CHECKING

from symtensor.derivation.linebreak import LINE, break_lines

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_WORDS = re.compile(r"\w+")
_ELEMENTS = frozenset(
    _WORDS.findall(
        "math mrow mi mo mn mtext mspace msub msup msubsup mfrac msqrt mroot munder mover munderover mtable mtr mtd "
        "mstyle mpadded mphantom menclose"
    )
)
_ATTRIBUTES = frozenset(
    _WORDS.findall(
        "display displaystyle scriptlevel mathvariant stretchy fence form accent accentunder width height depth lspace "
        "rspace linethickness minsize maxsize largeop movablelimits separator symmetric notation"
    )
)
_OPERATOR = r"\\operatorname\*?\{([A-Za-z]+)\}"
#: an upright name is set as text, and kept off a following letter or command by a thin space
_REWRITES = (
    (re.compile(r"\\(begin|end)\{(aligned|align\*?|gathered|eqnarray\*?)\}"), r"\\\1{split}"),
    (re.compile(_OPERATOR + r"(?=\s*(?:[A-Za-z0-9]|\\(?!left|[bB]ig|[^A-Za-z])))"), r"\\text{\1}\\,"),
    (re.compile(_OPERATOR), r"\\text{\1}"),
    (re.compile(r"\\mathrm\{([A-Za-z])\}"), r"\\text{\1}"),
    (re.compile(r"\\sim(?![A-Za-z])"), "∼"),
    (re.compile(r"\\(?:tag|label)\{[^{}]*\}|\\(?:nonumber|notag)(?![A-Za-z])"), ""),
)


def mathml(latex: str, display: bool = False, line: float = LINE) -> str:
    """`latex` (no delimiters) as a `<math>` element, or as `<code>` with the source if it has no MathML form.

    With `display`, sums longer than `line` characters are broken.
    """
    element = _convert(latex, display)
    if element is None:
        return f'<code class="latex">{escape(latex)}</code>'
    return _markup(break_lines(element, line) if display else element)


def inline(text: str) -> str:
    r"""Plain `text` as HTML: everything escaped, `$..$` as inline mathematics, backticks as code; `\$` is a dollar."""
    parts = re.split(r"(?<!\\)(\$[^$]+\$|`[^`]+`)", text)
    html = [_inline_part(part) for part in parts]
    for index in range(1, len(parts), 2):  # a line must not begin with the punctuation that follows a formula
        mark = re.match(r"[,.;:!?)]+", parts[index + 1])
        if mark and html[index].startswith("<math"):
            html[index] = f'<span class="keep">{html[index]}{mark.group()}</span>'
            html[index + 1] = _inline_part(parts[index + 1][mark.end() :])
    return "".join(html)


def _inline_part(part: str) -> str:
    if len(part) > 2 and part[0] == part[-1] == "$":
        return mathml(part[1:-1])
    if len(part) > 2 and part[0] == part[-1] == "`":
        return f"<code>{escape(part[1:-1], quote=False)}</code>"
    return escape(part.replace("\\$", "$"), quote=False)


def _convert(latex: str, display: bool) -> Element | None:
    from latex2mathml.converter import convert_to_element

    source = latex.strip()
    for pattern, replacement in _REWRITES:
        source = pattern.sub(replacement, source)
    if not _balanced(source):
        return None
    try:
        element = convert_to_element(source, display="block" if display else "inline")
    except Exception:  # the converter raises many kinds, IndexError included; the source is always showable
        return None
    _mend(element)
    return element if _sound(element) else None


def _mend(element: Element) -> None:
    """Braces that the converter leaves escaped inside sized delimiters, and a relation that it takes for a letter."""
    for node in element.iter():
        text = unescape(node.text or "")
        if text in ("\\{", "\\}"):
            node.text = text[1]
        elif text == "∼" and _tag(node) == "mi":
            node.tag = "mo"


def _balanced(source: str) -> bool:
    """True if every brace that groups has its partner; the converter drops what is left over without a word."""
    depth = 0
    for character in re.sub(r"\\[\\{}]", "", source):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


def _sound(element: Element) -> bool:
    """False if the converter left a command or a column mark standing as text, or used an element not on the list."""
    for node in element.iter():
        text = unescape(node.text or "")
        if _tag(node) not in _ELEMENTS or (_tag(node) != "mtext" and (text.startswith("\\") or text == "&")):
            return False
    return True


def _tag(node: Element) -> str:
    return node.tag.rpartition("}")[2]


def _markup(node: Element) -> str:
    tag = _tag(node)
    attributes = "".join(f' {key}="{escape(value)}"' for key, value in node.attrib.items() if key in _ATTRIBUTES)
    if tag == "mtd" and node.get("columnalign") in ("left", "right", "center"):
        attributes += f' style="text-align: {node.get("columnalign")}"'
    inner = escape(unescape(node.text or ""), quote=False) + "".join(_markup(child) for child in node)
    return f"<{tag}{attributes}>{inner}</{tag}>"
