"""The compiled kernel: orderly generation of connected multigraphs with prescribed degrees, row by row.

A diagram's nodes are sorted by class (each labelled leg alone, unlabelled legs of one field, vertices of one kind), and
the diagram is the symmetric matrix of *entries*: entry (u, v) says how many lines of each kind join u and v. Among the
relabellings within classes the canonical one has the lexicographically largest upper triangle, row by row. Rows are filled in
that order; after each row the prefix is tested, so that no diagram is stored to be compared with a later one (R. C. Read,
Ann. Discrete Math. 2 (1978) 107; I. A. Faradzev 1978; the refinement of cells follows M. Meringer, J. Graph Theory 30
(1999) 137).

`tables` turns a connected skeleton into integer tables, `canonicity` tests and finds the automorphisms, `pruning` has the rules
that cut a branch (connected, one-particle irreducible, causal, ..), `search` fills rows and can be interrupted between
diagrams.
"""
