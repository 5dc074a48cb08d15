"""The report: opens as HTML, needs nothing else, escapes everything; figures of the promised size."""

from __future__ import annotations

import base64
import re
import struct
from html.parser import HTMLParser

import pytest

from limen.reproduce.report import duration, figure_of, write_report
from limen.reproduce.runner import ExperimentError, run
from limen.reproduce.store import Store

VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """The text of a page, its attributes, and whether its elements are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.attributes: list[tuple[str, str | None]] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data

    def all(self, name: str) -> list[str | None]:
        return [value for key, value in self.attributes if key == name]


@pytest.fixture
def report(fakes, tmp_path):
    def report(scale="full"):
        out = tmp_path / "out"
        outcomes = [*run(fakes.find(), scale, Store(out, fakes.folder), lambda step: None)]
        for outcome in outcomes:
            figure_of(outcome, out)
        return write_report(fakes.find(), outcomes[:2], scale, out)

    return report


def test_the_page(fakes, report, tmp_path):
    for number in (1, 2, 3):
        fakes.write(f"cei/{number}.py", f"CEI-{number}")
    path = report()
    assert path == tmp_path / "out" / "full" / "report.html"
    page = Page(path.read_text())
    assert page.all("id") == ["CEI-1", "CEI-2"]
    assert page.all("href") == ["#CEI-1", "#CEI-2"]
    assert "Not measured at this scale (full): CEI-3." in page.text
    for told in ("A fake of CEI-1", "CEI-2 is so.", "it adds up", "the paper's", "n = 3", "numba"):
        assert told in page.text
    assert "6 cases in 0." in page.text and "2 hold" in page.text


def test_it_needs_nothing_else(fakes, report):
    fakes.write("cei/1.py", "CEI-1")
    text = report().read_text()
    page = Page(text)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert "url(" not in text and "http" not in text
    (image,) = page.all("src")
    kind, _, data = image.partition(",")
    assert kind == "data:image/svg+xml;base64" and b"<svg" in base64.b64decode(data)
    assert page.all("alt") == ["Figure of CEI-1: A fake of CEI-1"]


def test_everything_is_escaped(fakes, report):
    nasty = "<script>alert(1)</script> & \\\"quoted\\\" 'single'"
    plain = nasty.replace("\\", "")
    fakes.write("cei/1.py", "CEI-1")
    text = (fakes.folder / "cei/1.py").read_text()
    for old, new in [
        ('"""A fake of CEI-1.', f"'''A fake: {plain}.".replace("'single'", "(single)")),
        ('More.\n"""', "More.\n'''"),
        ('"CEI-1 is so."', f'"{nasty}"'),
        ('"the paper\'s", "n": 3', f'"{nasty}", "n": 3, "{nasty}": "{nasty}"'),
        ('"it adds up", True, "", str(total)', f'"{nasty}", True, "{nasty}", "{nasty}"'),
        ('f"{total} in all"', f'"{nasty}", "{nasty}"'),
    ]:
        assert old in text
        text = text.replace(old, new)
    fakes.text("cei/1.py", text)
    page = Page(report().read_text())
    assert "script" not in page.tags
    assert "A fake: <script>alert" in page.text
    told = 1 + 2 + 2 + 3 + 2  # paper, scale, a parameter and its name, check, measured and note
    assert page.text.count(plain) == told


def test_empty_texts_and_paragraphs(fakes, report):
    fakes.write("cei/1.py", "CEI-1", ('f"{total} in all"', '"m", "one\\n\\ntwo"'))
    text = report().read_text()
    assert 'class="empty"' in text and "one<br><br>two" in text


def test_figures(fakes, report, tmp_path):
    fakes.write("cei/1.py", "CEI-1")
    fakes.write(
        "cei/2.py", "CEI-2", ("    figure.sub", "    figure.set_size_inches(8, 8)\n    figure.sub")
    )
    report()
    out = tmp_path / "out" / "full"
    for id, size in (("CEI-1", (1200, 660)), ("CEI-2", (1200, 1200))):
        data = (out / f"{id}.png").read_bytes()
        assert data[:4] == b"\x89PNG" and struct.unpack(">II", data[16:24]) == size
        svg = (out / f"{id}.svg").read_text()
        assert "<svg" in svg and not re.search(r"\d{4}-\d\d-\d\dT", svg)
    assert not list(out.glob("*.tmp"))


def test_a_figure_is_drawn_once(fakes, report, tmp_path):
    fakes.write("cei/1.py", "CEI-1")
    report()
    png = tmp_path / "out" / "full" / "CEI-1.png"
    png.write_bytes(b"ours")
    report()
    assert png.read_bytes() == b"ours"
    png.unlink()
    report()
    assert png.read_bytes()[:4] == b"\x89PNG"


def test_a_figure_that_fails(fakes, report):
    fakes.write("cei/1.py", "CEI-1", ("figure.subplots()", "figure.no_such()"))
    with pytest.raises(ExperimentError, match=r"^CEI-1 figure: AttributeError: .*cei/1.py, line 2"):
        report()


def test_durations():
    assert duration(59.6) == "60 s" and duration(95) == "2 min" and duration(3600) == "1 h 0 min"
