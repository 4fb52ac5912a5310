"""Feynman diagrams: every diagram of a correlation or vertex function, exactly once, with its symmetry factor.

    model.py, theories.py, model_file.py    what fields, propagators and vertices there are
    request.py, contents.py                 what is asked for; which vertices that allows
    kernel/                                 the compiled orderly search for connected multigraphs
    enumeration.py, dressed.py, index_lines from a request to canonical parts; disconnected diagrams; the 1/N mode
    diagram.py, collection.py               a diagram, and the lazy set of them: start at `enumerate_diagrams`
    properties.py, flow.py, routing.py, ..  what a diagram is: bridges, tadpoles, index loops, momenta, times
    canonical.py, isomorphism.py            canonical form of a given graph; exact isomorphism by another route
    weights/, verification.py               counts and weights without enumeration: the proof of completeness
    draw/, exchange.py, edge_string.py      pictures, JSON, networkx, one-line text
"""

from symtensor.diagrams.collection import DiagramSet, Tally, enumerate_diagrams
from symtensor.diagrams.diagram import Diagram
from symtensor.diagrams.errors import DiagramError, IncompleteError, InfiniteRequestError, ModelError, RequestError
from symtensor.diagrams.graph import Graph, Leg, Line, Node
from symtensor.diagrams.model import Field, Model, Propagator, Vertex, VertexFamily
from symtensor.diagrams.theories import THEORIES, theory

__all__ = [
    "THEORIES",
    "Diagram",
    "DiagramError",
    "DiagramSet",
    "Field",
    "Graph",
    "IncompleteError",
    "InfiniteRequestError",
    "Leg",
    "Line",
    "Model",
    "ModelError",
    "Node",
    "Propagator",
    "RequestError",
    "Tally",
    "Vertex",
    "VertexFamily",
    "enumerate_diagrams",
    "theory",
]
