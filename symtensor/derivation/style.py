"""The one style sheet of every report: a paper's typography, light and dark, for screen and print. No web fonts."""

from __future__ import annotations

STYLE = """
.symtensor { --ink: #1a1d21; --soft: #5b636d; --rule: #c9ced6; --faint: #eceff3; --paper: #fdfdfb; --panel: #f5f6f7;
  --accent: #1f5fa8; --good: #1c7a3e; --bad: #b3261e; --warn: #8a5a00; --warn-back: #fff6e0; --bad-back: #fdeeec;
  --good-back: #edf7f0;
  color: var(--ink); background: var(--paper); line-height: 1.55; font-size: 1.02rem; overflow-wrap: break-word;
  font-family: Charter, "Bitstream Charter", "Source Serif 4", "STIX Two Text", STIXGeneral, Cambria, Georgia, serif; }
@media (prefers-color-scheme: dark) { .symtensor { --ink: #e3e5e8; --soft: #a2a9b3; --rule: #3d434c; --faint: #262a30;
  --paper: #16181b; --panel: #1e2125; --accent: #85b7f0; --good: #6fcf8f; --bad: #ff8a80; --warn: #ffcf70;
  --warn-back: #33290f; --bad-back: #3a1d1b; --good-back: #17301f; } }
body.symtensor { margin: 0; }
.symtensor main { max-width: 50rem; margin: 0 auto; padding: 2.5rem 1.5rem 5rem; }
.symtensor h1 { font-size: 1.85rem; line-height: 1.2; margin: 0 0 .3rem; font-weight: 600; }
.symtensor .subtitle { color: var(--soft); font-size: 1.1rem; margin: 0 0 1.6rem; }
.symtensor h2 { font-size: 1.3rem; margin: 2.8rem 0 .7rem; padding-bottom: .25rem; border-bottom: 1px solid var(--rule);
  font-weight: 600; line-height: 1.3; }
.symtensor h3 { font-size: 1.08rem; margin: 1.8rem 0 .4rem; font-weight: 600; }
.symtensor h4 { font-size: 1rem; margin: 1.3rem 0 .3rem; font-weight: 600; font-style: italic; }
.symtensor p { margin: .6rem 0; }
.symtensor a { color: var(--accent); text-decoration-thickness: .06em; text-underline-offset: .15em; }
.symtensor .number { color: var(--soft); margin-right: .5em; font-variant-numeric: tabular-nums; }
.symtensor nav.contents { margin: 1.5rem 0 2rem; padding: .8rem 1.2rem; background: var(--panel); font-size: .95rem; }
.symtensor nav.contents ol { margin: 0; padding: 0; list-style: none; columns: 2; column-gap: 2rem; }
.symtensor nav.contents li { break-inside: avoid; padding: .08rem 0; }
.symtensor nav.contents a { color: inherit; text-decoration: none; }
.symtensor nav.contents a:hover { text-decoration: underline; }
.symtensor .equation { display: flex; align-items: center; gap: 1rem; margin: .9rem 0; }
.symtensor .equation > .body { flex: 1 1 auto; overflow-x: auto; overflow-y: hidden; padding: .2rem 0; }
.symtensor .equation > .label { color: var(--soft); flex: none; font-size: .95rem; }
.symtensor .keep { white-space: nowrap; }
.symtensor math { font-size: 1.06em;
  font-family: "STIX Two Math", "Latin Modern Math", "Cambria Math", STIXGeneral, math; }
.symtensor mtd { padding-top: .25em; padding-bottom: .25em; }
.symtensor figure { margin: 1.5rem 0; }
.symtensor figure svg { display: block; max-width: 100%; height: auto; margin: 0 auto; color: var(--ink); }
.symtensor figcaption, .symtensor caption { color: var(--soft); font-size: .92rem; line-height: 1.45;
  text-align: left; }
.symtensor figcaption { margin-top: .5rem; }
.symtensor caption { caption-side: top; padding: 0 0 .45rem; }
.symtensor figcaption b, .symtensor caption b { color: var(--ink); font-weight: 600; }
.symtensor .table { overflow-x: auto; margin: 1.2rem 0; }
.symtensor table { border-collapse: collapse; border-top: 1.5px solid var(--ink); border-bottom: 1.5px solid var(--ink);
  font-size: .9rem; font-variant-numeric: tabular-nums lining-nums; min-width: min(100%, 34rem); line-height: 1.4; }
.symtensor th { font-weight: 600; text-align: left; padding: .35rem .8rem .35rem 0; vertical-align: bottom;
  border-bottom: .75px solid var(--ink); }
.symtensor td { padding: .22rem .8rem .22rem 0; vertical-align: top; text-align: left; }
.symtensor th.n, .symtensor td.n { text-align: right; white-space: nowrap; }
.symtensor th.group { text-align: center; border-bottom: .75px solid var(--rule); padding-bottom: .15rem; }
.symtensor tbody tr:hover { background: var(--faint); }
.symtensor td.good { color: var(--good); } .symtensor td.bad { color: var(--bad); font-weight: 600; }
.symtensor td.warn { color: var(--warn); }
.symtensor pre, .symtensor code { font-family: "DejaVu Sans Mono", Menlo, Consolas, "Liberation Mono", monospace; }
.symtensor code { font-size: .86em; background: var(--panel); padding: .05em .25em; border-radius: 2px; }
.symtensor pre { background: var(--panel); padding: .8rem 1rem; overflow-x: auto; font-size: .82rem; line-height: 1.45;
  margin: .9rem 0; border-left: 2px solid var(--rule); }
.symtensor pre code { background: none; padding: 0; font-size: inherit; }
.symtensor dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.4rem; margin: .9rem 0;
  font-size: .95rem; }
.symtensor dt { color: var(--soft); } .symtensor dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.symtensor ul, .symtensor ol { padding-left: 1.4rem; } .symtensor li { margin: .2rem 0; }
.symtensor .note { margin: 1rem 0; padding: .6rem 1rem; border-left: 3px solid var(--accent);
  background: var(--panel); }
.symtensor .note p { margin: .2rem 0; }
.symtensor .note.warning { border-color: var(--warn); background: var(--warn-back); }
.symtensor .note.failure { border-color: var(--bad); background: var(--bad-back); }
.symtensor .note.success { border-color: var(--good); background: var(--good-back); }
.symtensor .check { display: grid; grid-template-columns: 4.6rem 1fr; gap: 0 .8rem; margin: .5rem 0;
  font-size: .93rem; }
.symtensor .check .mark { font-variant: small-caps; letter-spacing: .03em; color: var(--soft); }
.symtensor .check.passed .mark { color: var(--good); }
.symtensor .check.failed .mark { color: var(--bad); font-weight: 600; }
.symtensor .check .detail { color: var(--soft); }
.symtensor .cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: .8rem; margin: 1rem 0; }
.symtensor .cards figure { margin: 0; padding: .6rem; border: 1px solid var(--rule); border-radius: 4px; text-align: center;
  overflow-x: auto; }
.symtensor .cards svg { max-width: 100%; height: auto; } .symtensor .cards math { font-size: .85em; }
.symtensor .cards figcaption { font-size: .8rem; text-align: center; overflow-wrap: anywhere; }
.symtensor details { margin: .9rem 0; } .symtensor summary { cursor: pointer; color: var(--accent); }
@media (max-width: 40rem) { .symtensor nav.contents ol { columns: 1; } .symtensor dl { grid-template-columns: 1fr; }
  .symtensor dd { margin-bottom: .4rem; } .symtensor main { padding: 1.2rem 1rem 3rem; } }
@media print { .symtensor { font-size: 10pt; background: none; } .symtensor main { max-width: none; padding: 0; }
  .symtensor figure, .symtensor .equation, .symtensor tr, .symtensor .check { break-inside: avoid; }
  .symtensor h2, .symtensor h3 { break-after: avoid; } .symtensor .table, .symtensor .body { overflow: visible; } }
"""
