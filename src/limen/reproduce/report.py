"""Figures of claims, and one page with all that is known at a scale: a file that needs no other.

Each figure is an image of its own within the page, since several SVGs inline would share their ids.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from limen.plotting.style import style
from limen.reproduce.claim import SHORT, WORDS, Claim, Kind, heading
from limen.reproduce.page import CSS
from limen.reproduce.runner import Outcome, blamed
from limen.reproduce.store import write

INCHES = 10, 5.5  # unless the experiment wants another size
PIXELS = 1200  # width of the PNG


def figure_of(outcome: Outcome, out: Path) -> Path:
    """Draw OUT/<scale>/<CLAIM>.svg and .png, unless they are drawn already; the path of the PNG."""
    png = out / outcome.plan.scale / f"{outcome.claim.id}.png"
    svg, mark = png.with_suffix(".svg"), outcome.plan.kept.folder / "drawn"
    drawn_from = json.dumps([matplotlib.__version__, outcome.results]).encode()
    digest = hashlib.sha256(drawn_from).hexdigest().encode()
    if png.exists() and svg.exists() and mark.exists() and mark.read_bytes() == digest:
        return png
    with blamed(outcome.claim, "figure"), style():
        figure = Figure(figsize=INCHES, layout="constrained")
        FigureCanvasAgg(figure)
        outcome.plan.experiment.draw(outcome.plan.parameters, outcome.results, figure)
        images = _image(figure, "svg"), _image(figure, "png")
    for path, image in zip((svg, png), images, strict=True):
        write(path, image)
    write(mark, digest)
    return png


def _image(figure: Figure, kind: str) -> bytes:
    file = io.BytesIO()
    dated: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {}
    figure.savefig(file, format=kind, dpi=PIXELS / figure.get_figwidth(), **dated)
    return file.getvalue()


def write_report(
    claims: Sequence[Claim], outcomes: Sequence[Outcome], scale: str, out: Path
) -> Path:
    """The page about the outcomes, in the order of the claims; says which claims are missing."""
    known = {outcome.claim: outcome for outcome in outcomes}
    ordered = [known[claim] for claim in claims if claim in known]
    missing = [claim for claim in claims if claim not in known]
    body = "\n".join(
        [
            *_head(ordered, scale),
            *_summary(claims, ordered),
            *_missing(missing, scale),
            *(line for outcome in ordered for line in _section(outcome, out)),
        ]
    )
    path = out / scale / "report.html"
    write(path, PAGE.format(css=CSS, body=body).encode())
    return path


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The papers' claims, measured</title>
<style>{css}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

INTRODUCTION = """Each claim of the papers that Limen implements, as a check that was run. A verdict is
measured, never assumed: a claim <em>holds</em>; or it <em>holds in direction, not in size</em>, when what
was measured goes the paper's way but not as far; or it <em>does not hold</em>, which is a finding. The
same command makes this page again:"""
SIZES = {
    "quick": "sizes cut down, so that all of it takes minutes",
    "full": "the papers' sizes, cut down by a stated factor where this machine cannot hold them",
}


def _head(outcomes: Sequence[Outcome], scale: str) -> Iterator[str]:
    yield "<header>"
    yield "<h1>The papers&rsquo; claims, measured</h1>"
    yield f"<p>{INTRODUCTION} <code>limen reproduce --{scale}</code>.</p>"
    yield '<ul class="tally">'
    counts = Counter(outcome.verdict.kind for outcome in outcomes)
    for kind in WORDS:
        yield f'<li class="{kind}"><b>{counts[kind]}</b> {_plural(kind, counts[kind])}</li>'
    yield "</ul>"
    measured = [one for outcome in outcomes for one in outcome.measured]
    days = sorted(one.at[:16].replace("T", " ") for one in measured)
    span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    took = _took(len(measured), sum(one.seconds for one in measured))
    yield '<dl class="facts">'
    for machine in sorted({one.machine for one in measured}):
        hardware, _, versions = machine.partition("; ")
        yield f"<div><dt>Machine</dt><dd>{escape(hardware)}</dd></div>"
        yield f"<div><dt>Versions</dt><dd>{escape(versions)}</dd></div>"
    yield f"<div><dt>Measured</dt><dd>{escape(span)} UTC</dd></div>"
    yield f"<div><dt>Took</dt><dd>{took}</dd></div>"
    yield f"<div><dt>Scale</dt><dd>{scale}: {SIZES[scale]}</dd></div>"
    yield "</dl>"
    yield "</header>"


def _took(cases: int, seconds: float) -> str:
    return f"{cases:,} case{'' if cases == 1 else 's'} in {duration(seconds)}"


def _plural(kind: Kind, count: int) -> str:
    if count == 1:
        return WORDS[kind]
    return {
        "holds": "hold",
        "direction": "hold in direction, not in size",
        "fails": "do not hold",
    }[kind]


def _summary(claims: Sequence[Claim], outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield '<table class="summary">'
    yield (
        '<thead><tr><th scope="col">Claim</th><th scope="col">What it is about</th>'
        '<th scope="col">Verdict</th><th scope="col">Scale</th></tr></thead>'
    )
    for group in dict.fromkeys(outcome.claim.group for outcome in outcomes):
        yield "<tbody>"
        told = escape(heading(claims, group))
        yield f'<tr class="paper"><th colspan="4" scope="rowgroup">{told}</th></tr>'
        for outcome in outcomes:
            if outcome.claim.group == group:
                claim = outcome.claim
                yield _row(
                    ("", f'<a href="#{claim.id}">{claim.id}</a>'),
                    ("", escape(claim.title)),
                    ("Verdict", _badge(outcome.verdict.kind, outcome.verdict.word)),
                    ("Scale", escape(outcome.plan.parameters["scale"])),
                )
        yield "</tbody>"
    yield "</table>"


def _missing(claims: Sequence[Claim], scale: str) -> Iterator[str]:
    if claims:
        names = ", ".join(claim.id for claim in claims)
        yield f'<p class="missing">Not measured at this scale ({scale}): {names}.</p>'


def _section(outcome: Outcome, out: Path) -> Iterator[str]:
    claim, verdict = outcome.claim, outcome.verdict
    yield f'<section id="{claim.id}">'
    yield f'<h2><span class="id">{claim.id}</span> {escape(claim.title)}</h2>'
    yield f'<p class="verdict">{_badge(verdict.kind, verdict.word)} {_text(verdict.measured)}</p>'
    said = _text(outcome.plan.experiment.paper)
    yield f'<blockquote><span class="label">The paper</span> {said}</blockquote>'
    yield '<table class="checks">'
    yield (
        '<thead><tr><th scope="col">Statement</th><th scope="col">Paper</th>'
        '<th scope="col">Measured</th><th scope="col">Result</th></tr></thead><tbody>'
    )
    for check in verdict.checks:
        yield _row(
            ("", _text(check.says)),
            ("Paper", _text(check.paper)),
            ("Measured", _text(check.measured)),
            ("Result", _badge(check.result, SHORT[check.result])),
        )
    yield "</tbody></table>"
    image = base64.b64encode((out / outcome.plan.scale / f"{claim.id}.svg").read_bytes()).decode()
    alt = escape(f"Figure of {claim.id}: {claim.title}")
    yield f'<figure><img src="data:image/svg+xml;base64,{image}" alt="{alt}"></figure>'
    if verdict.note:
        yield f'<p class="note"><span class="label">Note</span> {_text(verdict.note)}</p>'
    scale = escape(outcome.plan.parameters["scale"])
    yield f'<p class="parameters"><span class="label">Scale</span> {scale}'
    yield f"&ensp;{_parameters(outcome.plan.parameters)}<br>"
    yield f"{_took(len(outcome.measured), outcome.seconds)}</p>"
    yield "</section>"


def _badge(kind: Kind, word: str) -> str:
    return f'<span class="badge {kind}">{word}</span>'


def _row(*cells: tuple[str, str]) -> str:
    """Cells with the names that stand before them on a narrow screen."""
    return "<tr>" + "".join(_cell(label, told) for label, told in cells) + "</tr>"


def _cell(label: str, told: str) -> str:
    return (
        f'<td data-label="{label}"><span>{told}</span></td>' if told else '<td class="empty"></td>'
    )


def _text(text: str) -> str:
    """Escaped; an empty line begins a paragraph."""
    return "<br><br>".join(escape(part.strip()) for part in text.strip().split("\n\n"))


def _parameters(parameters: dict[str, Any]) -> str:
    shown: Iterable[tuple[str, Any]] = ((k, v) for k, v in parameters.items() if k != "scale")
    return " ".join(f"<code>{escape(f'{k} = {_value(v)}')}</code>" for k, v in shown)


def _value(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def duration(seconds: float) -> str:
    """
    >>> duration(0.31), duration(42.4), duration(200), duration(7500)
    ('0.3 s', '42 s', '3 min', '2 h 5 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
