"""Documents: mathematics, escaping, self-containedness, determinism."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symtensor.derivation.document import Cell, Document, Math
from symtensor.derivation.mathml import inline, mathml

VOID = {"meta", "br", "img", "link", "input", "hr", "use", "path", "mspace"}


class Checker(HTMLParser):
    """Collects tags and attributes, and checks that every element is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID - {"mspace"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in VOID - {"mspace"}:
            return
        assert self.open and self.open.pop() == tag, f"</{tag}> closes the wrong element"


def parse(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


def small_figure():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], marker="o")
    return figure


def full() -> Document:
    document = Document("A <title> with $K_0$", "sub & title")
    document.heading("One").paragraph("Text with $x^2$ and `code`.").equation(r"\frac{a}{b}", "1")
    document.heading("Two").heading("Two one", 3).items(["$a$", "b"]).items(["c"], ordered=True)
    document.heading("Three").definitions([("seed", "0"), (Math("`x`"), Math("$y$"))])
    document.table(["name", "value"], [["a", "1.5"], ["b", Cell("-2", "bad")]], "Caption $z$.")
    document.table(["", "x", "y"], [["r", "1", "2"]], groups=[("", 1), (Math("$K$"), 2)])
    document.figure(small_figure(), "A line.").figure(small_figure(), "Again.")
    document.code("if a < b & c:\n    pass").note("careful", "warning").check(True, "n", "s", "d").check(
        False, "n", "s"
    )
    with document.details("More"):
        document.paragraph("hidden")
    return document


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"K_0^{l+1}", "<msubsup><mi>K</mi><mn>0</mn>"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", '<mtd style="text-align: right"><mi>a</mi></mtd>'),
        (r"\operatorname{Cov}(G)", '<mtext>Cov</mtext><mo stretchy="false">(</mo>'),
        (r"\operatorname{erf} x", '<mtext>erf</mtext><mspace width="0.167em"></mspace><mi>x</mi>'),
        (r"\mathrm{d}t", "<mtext>d</mtext><mi>t</mi>"),
        (r"\mathbb{E}", "𝔼"),
        (r"\{x\}", "{</mo>"),
        (r"x < y", "<mo>&lt;</mo>"),
        (r"x \tag{3}", "<mi>x</mi>"),
    ],
)
def test_latex_becomes_mathml(latex, expected):
    html = mathml(latex, display=True)
    assert html.startswith('<math display="block">') and expected in html
    parse(html)


@pytest.mark.parametrize("latex", [r"\unknowncommand{x}", r"\frac{1}{2", "}", r"\left(", "x^", "a & b", ""])
def test_what_has_no_mathml_form_is_shown_as_source(latex):
    html = mathml(latex)
    assert html.startswith('<code class="latex">')
    parse(html)


def test_links_and_markup_in_latex_come_to_nothing():
    assert "javascript" not in mathml(r"\href{javascript:alert(1)}{x}")
    assert "<script" not in mathml(r"\text{<script>alert(1)</script>}")


@given(st.text(st.sampled_from("\\{}^_&$<>\"'abx12 ()[]|,") | st.characters(codec="utf-8"), max_size=30))
def test_no_text_becomes_markup(text):
    allowed = {"math", "code", "span", "mtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose", "mtable", "mrow"}
    allowed |= {"mi", "mo", "mn", "mtext", "mspace", "msub", "msup", "msubsup", "mfrac", "msqrt", "mroot"}
    allowed |= {"munder", "mover", "munderover"}
    for html in (mathml(text), mathml(text, display=True), inline(text)):
        checker = parse(html)
        assert {tag for tag, _ in checker.tags} <= allowed
        assert all(not name.startswith("on") and name != "href" for _, attrs in checker.tags for name in attrs)


def test_inline_text():
    assert inline(r"costs \$5, `a<b`, <i>") == "costs $5, <code>a&lt;b</code>, &lt;i&gt;"
    assert inline("the $x$, then").endswith(",</span> then")
    assert inline("one $ alone") == "one $ alone"


def test_the_page_is_whole_and_every_element_is_closed():
    html = full().html()
    checker = parse(html)
    assert html.startswith("<!DOCTYPE html>") and "<title>A &lt;title&gt; with K_0</title>" in html
    tags = [tag for tag, _ in checker.tags]
    assert tags.count("figure") == 2 and tags.count("table") == 2 and tags.count("details") == 1
    for expected in ("Table 1.", "Figure 2.", "if a &lt; b &amp; c:", '<td class="n bad">-2</td>', "note warning"):
        assert expected in html
    assert '<th class="n">value</th>' in html and "<th>name</th>" in html


def test_the_page_needs_no_script_and_no_network():
    html = full().html()
    checker = parse(html)
    assert not {"script", "link", "iframe", "object", "embed", "img", "base", "form"} & {tag for tag, _ in checker.tags}
    for _, attributes in checker.tags:
        for name, value in attributes.items():
            if name in ("href", "src", "xlink:href", "action", "data", "srcset"):
                assert value and value.startswith("#"), (name, value)
    assert "http:" not in html and "https:" not in html and "@import" not in html
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))


def test_identifiers_are_unique_and_every_reference_has_its_target():
    checker = parse(full().html())
    ids = [attributes["id"] for _, attributes in checker.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    references = {value[1:] for _, attrs in checker.tags for name, value in attrs.items() if name == "href" and value}
    assert references and references <= set(ids)


def test_contents_list_the_sections():
    html = full().html()
    assert html.count("<li><a href=") == 3
    assert '<a href="#s2"><span class="number">2</span>Two</a>' in html
    assert '<h3 id="s2-1"><span class="number">2.1</span>Two one</h3>' in html


def test_the_same_document_has_the_same_bytes():
    assert full().html() == full().html()
    assert not re.search(r"20\d\d-\d\d-\d\d|[Mm]atplotlib v", full().html())


def test_figures_take_the_colour_of_the_page_and_need_no_fonts():
    from symtensor.derivation.svg import INK, figure_svg

    figure = small_figure()
    figure.axes[0].set_title("text", color=INK)
    svg = figure_svg(figure, "f1", 'a "label"')
    assert svg.startswith('<svg role="img" aria-label="a &quot;label&quot;"')
    assert "currentColor" in svg and INK not in svg and "<text" not in svg and "xmlns" not in svg


def test_mistakes_in_building_are_named():
    with pytest.raises(ValueError, match="heading level must be 2, 3 or 4, got 1"):
        Document("t").heading("x", 1)
    with pytest.raises(ValueError, match="every row must have 2 cells"):
        Document("t").table(["a", "b"], [["1"]])
    with pytest.raises(ValueError, match="not 'loud'"):
        Document("t").note("x", "loud")


def test_fragment_is_one_element_for_a_notebook():
    fragment = full()._repr_html_()
    parse(fragment)
    assert fragment.startswith('<div class="symtensor"><style>') and "<html" not in fragment
