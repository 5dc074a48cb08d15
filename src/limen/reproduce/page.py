"""How the report looks: the colours of the pictures, on a wide screen, a narrow one, and paper.

On a narrow screen a row of a table becomes a block, each cell with its heading before it. Figures are
drawn on white and stay on white cards in the dark.
"""

from __future__ import annotations

CSS = """
:root {
  --ink: #2b3138; --soft: #5f6b76; --line: #dfe3e7; --page: #f6f7f9; --card: #ffffff;
  --link: #0072b2;
  --holds: #00704f; --holds-back: #e0f3ec;
  --direction: #835800; --direction-back: #fdf1d8;
  --fails: #a84600; --fails-back: #fce8dc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e3e7eb; --soft: #9aa5b0; --line: #353c45; --page: #15181c; --card: #1d2127;
    --link: #6cbcec;
    --holds: #5fd3ae; --holds-back: #12372c;
    --direction: #f0bf59; --direction-back: #3c2e0e;
    --fails: #ff9d66; --fails-back: #43220f;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Roboto, sans-serif;
}
main { max-width: 1040px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 12px; letter-spacing: -0.01em; }
h2 { font-size: 20px; line-height: 1.3; margin: 0 0 12px; }
h2 .id { color: var(--soft); font-weight: 600; margin-right: 6px; white-space: nowrap; }
p { margin: 0 0 14px; overflow-wrap: break-word; }
header > p { max-width: 780px; }
a { color: var(--link); text-decoration: none; font-weight: 600; white-space: nowrap; }
a:hover { text-decoration: underline; }
code { font: 0.86em/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.label {
  color: var(--soft); font-size: 12px; font-weight: 600; letter-spacing: 0.05em;
  text-transform: uppercase; margin-right: 6px;
}
.badge {
  display: inline-block; padding: 1px 9px; border-radius: 10px; font-size: 14px; font-weight: 600;
}
table .badge { white-space: nowrap; }
.badge.holds { color: var(--holds); background: var(--holds-back); }
.badge.direction { color: var(--direction); background: var(--direction-back); }
.badge.fails { color: var(--fails); background: var(--fails-back); }

.tally { display: flex; flex-wrap: wrap; gap: 8px 28px; list-style: none; margin: 20px 0; padding: 0; }
.tally b { font-size: 24px; margin-right: 3px; }
.tally .holds { color: var(--holds); }
.tally .direction { color: var(--direction); }
.tally .fails { color: var(--fails); }
.facts { margin: 0 0 28px; font-size: 14px; }
.facts div { display: flex; gap: 12px; }
.facts dt { flex: 0 0 76px; color: var(--soft); }
.facts dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }

table { width: 100%; border-collapse: collapse; font-size: 15px; line-height: 1.4; }
th { text-align: left; color: var(--soft); font-size: 13px; font-weight: 600; }
th, td {
  padding: 7px 12px; vertical-align: top; border-top: 1px solid var(--line);
  overflow-wrap: break-word;
}
thead th { border-top: 0; }
td:first-child, th:first-child { padding-left: 0; }
td:last-child, th:last-child { padding-right: 0; }
.summary, section {
  background: var(--card); border: 1px solid var(--line); border-radius: 10px;
}
.summary { border-collapse: separate; border-spacing: 0; margin-bottom: 14px; }
.summary td:first-child, .summary th:first-child { padding-left: 20px; }
.summary td:last-child, .summary th:last-child { padding-right: 20px; }
.summary .paper th { color: var(--ink); font-size: 14px; padding-top: 14px; }
.summary td:last-child { color: var(--soft); font-size: 14px; }
.missing { color: var(--soft); font-size: 14px; }
section { padding: 24px 28px; margin: 28px 0 0; }
blockquote {
  margin: 0 0 16px; padding: 2px 0 2px 14px; border-left: 3px solid var(--line); color: var(--ink);
}
.verdict .badge { margin-right: 6px; }
.checks { margin-bottom: 20px; }
.checks th:nth-child(1) { width: 38%; }
.checks th:nth-child(4) { width: 126px; }
figure {
  margin: 0 0 18px; padding: 8px; background: #ffffff; border: 1px solid var(--line);
  border-radius: 8px;
}
figure img { display: block; width: 100%; height: auto; }
.note { max-width: 860px; }
.parameters { color: var(--soft); font-size: 14px; margin: 0; }
.parameters code {
  display: inline-block; max-width: 100%; margin: 2px 4px 2px 0; padding: 0 6px; border-radius: 4px;
  background: var(--page); overflow-wrap: anywhere;
}

@media (max-width: 680px) {
  main { padding: 24px 14px 40px; }
  h1 { font-size: 25px; }
  section { padding: 18px 16px; margin-top: 18px; }
  figure { margin-left: -8px; margin-right: -8px; padding: 4px; }
  table, tbody, tr, td, .summary .paper th { display: block; width: 100%; }
  thead { display: none; }
  tr { padding: 9px 0; border-top: 1px solid var(--line); }
  td, .summary td { border: 0; padding: 1px 0; }
  td.empty { display: none; }
  td[data-label]:not([data-label=""]) { display: grid; grid-template-columns: 76px minmax(0, 1fr); }
  td[data-label]:not([data-label=""])::before {
    content: attr(data-label); color: var(--soft); font-size: 13px; line-height: 21px;
  }
  .checks td:first-child { font-weight: 600; }
  .summary tbody:first-of-type tr:first-child { border-top: 0; }
  .summary tr { padding: 9px 16px; }
  .summary td:first-child, .summary td:last-child { padding-left: 0; padding-right: 0; }
  .summary .paper th { border: 0; padding: 4px 0 0; }
}

@media print {
  :root {
    --ink: #000000; --soft: #444444; --line: #cccccc; --page: #ffffff; --card: #ffffff;
    --holds: #00704f; --holds-back: #ffffff; --direction: #835800; --direction-back: #ffffff;
    --fails: #a84600; --fails-back: #ffffff; --link: #000000;
  }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  table { font-size: 9.5pt; }
  section { border: 0; border-top: 1px solid var(--line); border-radius: 0; padding: 14px 0 0; }
  .badge { padding: 0; }
  h2, thead, tr, figure, blockquote, .verdict { break-inside: avoid; }
  h2, .verdict, blockquote { break-after: avoid; }
}
"""
