"""What `symtensor diagrams --help` teaches."""

from __future__ import annotations

__all__ = ["DESCRIPTION", "EPILOG", "EXAMPLE_MODEL", "USAGE"]

USAGE = "symtensor diagrams MODEL [options]"

DESCRIPTION = """\
Enumerate Feynman diagrams: every diagram of a correlation or vertex function exactly once, with its symmetry factor.

MODEL is a named theory or a model file (TOML, see below):
  phi3 phi4 phi6        one real field x with g x^k / k!
  phi3+phi4             both interactions, by loops (alias phi34)
  kpz                   response field xt, vertex xt x x
  cubic-langevin        response field xt, vertex xt x x x
  on                    N-component phi, auxiliary field sigma, vertex sigma phi.phi / 2
  layered-network       fields s and J, all vertices (p, q) with q >= 1, p + q >= 3, non-local in depth"""

EXAMPLE_MODEL = """\
name = "burgers"
causality = "local"
fields = [{ name = "x" }, { name = "xt", response = true }]
propagators = [{ ends = ["x", "x"] }, { ends = ["x", "xt"] }]

[[vertices]]
name = "g"
legs = "xt x^2"
orders = { g = 1 }

[[vertices]]
name = "h"
legs = "xt x^3"
orders = { h = 1 }
"""

EPILOG = (
    """\
classes (--class)
  all         all diagrams, also disconnected ones and vacuum parts; with 0 legs the empty diagram counts 1 at L = 1
  connected   one connected part; a leg is a source point joined by a propagator (the bare line is a diagram at L = 0)
  1pi         no internal line is a bridge; legs are amputated fields, and their lines are no bridges; no bare line
  vacuum      connected, without legs
L = lines - nodes + 1 is the loop order; the ends of external legs count as nodes, for disconnected diagrams too.

filters
  --no-self-loops      no line with both ends on one vertex
  --no-tadpoles        no part without legs that hangs on the rest by one line
  --no-snails          no part without legs that is attached at one vertex (self-loops included); implies no tadpoles
  --no-self-energies   no connected set of vertices without legs that is joined to the rest by exactly two lines

symmetry factor
  |Aut|, an integer: permutations of vertices (legs keep their labels) x m! for m parallel lines x m! 2^m for m
  self-loops that join legs of the same field. Vertices carry g / (factorials of their leg numbers); the weight is
  1/|Aut|.

response fields
  A response line runs from xt (earlier) to x (later). --causality local drops diagrams with a closed loop of response
  lines; nonlocal drops a diagram if and only if some set of vertices has no response line leaving it; none keeps all.

order in 1/N (model on, or any with one index field, one auxiliary field and the vertex index index auxiliary)
  --dressed resums the bubble chain into the auxiliary line: index loops with one or two auxiliary legs do not occur.
  --order K counts (auxiliary lines) - (index loops), relative to the leading term.

model file
"""
    + "\n".join(f"  {line}".rstrip() for line in EXAMPLE_MODEL.splitlines())
    + """
  Fields may also have conjugate = "psi" (complex), index = "N" (index lines), auxiliary = true. Propagators may carry
  orders = { .. }. [[families]] are all vertices over some fields. More: docs/diagrams.md

what comes out
  A list (canonical line, weight 1/|Aut|); with --out DIR also
  diagrams.json      the model and all diagrams, readable by Diagram.from_string
  index.html         pictures with weights; opens offline in any browser
  sheet.svg          the first pictures on one sheet
  diagrams/*         one SVG, TikZ-Feynman (.tex) and Graphviz (.dot) picture of each of the first diagrams
  --count --json prints {"count", "weight", "seconds"}; for models with an index and an auxiliary field also "by".

examples
  symtensor diagrams phi4 --legs 2 --loops 2 --class 1pi --out out/phi4
      The two 1PI diagrams of the propagator at two loops, drawn.
  symtensor diagrams phi4 --legs 2 --loops 6 --class 1pi --count --json
      {"count": 415, "weight": "10775/288", ...}
  symtensor diagrams kpz --legs x:2,xt:0 --loops 2 --verify
      <x x> of KPZ at two loops, and a proof that nothing is missing.
  symtensor diagrams on --legs phi:2 --dressed --order 2 --count --json
      The 23 diagrams of <phi phi> at order 1/N^2.
  symtensor diagrams burgers.toml --legs x:1,xt:1 --class 1pi --bound g=0:4 --bound h=0:2 --loops 2
      A model of your own, bounded in two couplings.

See also: symtensor --help"""
)
