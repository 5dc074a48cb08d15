"""Claims: verdict words, finding and ordering, what a module must define, relative imports."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from limen.reproduce import Check, Verdict
from limen.reproduce.claim import choose, find, folder, forget, heading, plain


def test_a_check_from_booleans():
    assert Check.of("a", True, "2", "3") == Check("a", "2", "3", "holds")
    assert Check.of("a", True, direction=True).result == "holds"
    assert Check.of("a", False, direction=True).result == "direction"
    assert Check.of("a", False).result == "fails"
    assert Check.of("a", np.bool_(False)).result == "fails"


@pytest.mark.parametrize(
    ("results", "word"),
    [
        (["holds"], "holds"),
        (["holds", "holds"], "holds"),
        (["holds", "direction"], "holds in direction, not in size"),
        (["direction", "fails", "holds"], "does not hold"),
    ],
)
def test_the_worst_check_decides(results, word):
    assert Verdict([Check("a", "b", "c", one) for one in results], "m").word == word


def test_malformed_verdicts_are_refused():
    with pytest.raises(ValueError, match="not 'maybe'"):
        Check("a", "b", "c", "maybe")
    with pytest.raises(TypeError, match="measured of a Check is a text, not 3"):
        Check.of("a", True, measured=3)
    with pytest.raises(TypeError, match="one or more"):
        Verdict([], "m")
    with pytest.raises(TypeError, match="note of a Verdict"):
        Verdict([Check.of("a", True)], "m", None)


def test_order_is_by_paper_then_by_number(fakes):
    for path, id in [
        ("cei/b.py", "CEI-10"),
        ("cei/c.py", "CEI-2"),
        ("bmq/a.py", "BMQ-1"),
        ("vci/a.py", "VCI-1"),
    ]:
        fakes.write(path, id)
    fakes.text("cei/shared.py", "X = 1\n")
    fakes.text("loose.py", 'CLAIM = "NOT-1"\n')
    assert [one.id for one in fakes.find()] == ["BMQ-1", "CEI-2", "CEI-10", "VCI-1"]
    fakes.text("__init__.py", '"""All."""\n\nORDER = ["vci", "cei"]\n')
    assert [one.id for one in fakes.find()] == ["VCI-1", "CEI-2", "CEI-10", "BMQ-1"]


def test_titles_and_names_of_papers(fakes):
    fakes.write("cei/b.py", "CEI-1")
    (claim,) = fakes.find()
    assert claim.title == "A fake of CEI-1" and claim.group == "cei"
    assert heading([claim], "cei") == "cei"
    fakes.text("cei/__init__.py", '"""Containment-encoded intervals."""\n')
    assert heading([claim], "cei") == "Containment-encoded intervals"


def test_choosing(fakes):
    for path, id in [("cei/a.py", "CEI-1"), ("joins/a.py", "BJ-1"), ("joins/b.py", "SSI-1")]:
        fakes.write(path, id)
    known = fakes.find()

    def chosen(*words):
        return [one.id for one in choose(known, words)]

    assert chosen() == ["CEI-1", "BJ-1", "SSI-1"]
    assert chosen("ssi-1", "cei") == ["CEI-1", "SSI-1"]
    assert chosen("joins", "BJ-1") == ["BJ-1", "SSI-1"]
    with pytest.raises(ValueError, match="no claim 'CEI-9'; there are: CEI-1, BJ-1, SSI-1"):
        chosen("CEI", "CEI-9")


def test_what_cannot_be_listed(fakes, tmp_path):
    with pytest.raises(ValueError, match="no experiments are installed"):
        find(tmp_path)
    fakes.write("cei/a.py", "CEI-1")
    fakes.write("cei/b.py", "CEI-1")
    with pytest.raises(ValueError, match="CEI-1 is claimed twice"):
        fakes.find()
    fakes.text("cei/b.py", "CLAIM = name()\n")
    with pytest.raises(ValueError, match="CLAIM must be written like"):
        fakes.find()


def test_a_module_that_does_not_parse_is_listed(fakes):
    fakes.text("cei/a.py", '"""A title."""\n\nCLAIM = "CEI-1"\n\nif:\n')
    (claim,) = fakes.find()
    assert (claim.id, claim.title) == ("CEI-1", "")
    with pytest.raises(SyntaxError):
        claim.load()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("PAPER = ", "LEAF = ", "PAPER is missing; it must be a str"),
        ('PAPER = "CEI-4 is so."', "PAPER = 4", "PAPER is 4; it must be a str"),
        ("def draw", "def drew", "there is no function draw"),
        ('"full"', '"large"', "SCALES must have quick and full, not quick, large"),
        ('{"scale": "a tenth", "n": 2}', "{}", 'quick must be a dict with a text "scale"'),
        ('"n": 2', '"n": {1, 2}', "SCALES: quick is not JSON: it has a set"),
    ],
)
def test_the_contract(one, old, new, told):
    with pytest.raises((ValueError, TypeError), match=told):
        one(old, new).load()


def test_what_travels_is_json():
    assert plain({"a": (1, 2), "b": np.int64(3), "c": np.arange(2.0), 4: None}, "it") == {
        "a": [1, 2],
        "b": 3,
        "c": [0.0, 1.0],
        "4": None,
    }


@pytest.mark.parametrize("packages", [True, False])
def test_relative_imports(fakes, packages):
    if packages:
        fakes.text("__init__.py", "ANSWER = 41\n")
        fakes.text("cei/__init__.py", "")
    fakes.text("common.py", "ANSWER = 41\n")
    fakes.text("cei/near.py", "from ..common import ANSWER\n\nTOLD = f'{ANSWER + 1} it is'\n")
    line = "from .near import TOLD" + ("\nfrom .. import ANSWER" if packages else "")
    fakes.write("cei/a.py", "CEI-1", ('PAPER = "CEI-1 is so."', f"{line}\n\nPAPER = TOLD"))
    assert fakes.find()[0].load().paper == "42 it is"
    assert "limen_experiments.cei.a" in sys.modules


def test_another_folder_is_another_package(fakes, tmp_path):
    fakes.write("cei/a.py", "CEI-1")
    assert fakes.find()[0].load().paper == "CEI-1 is so."
    other = tmp_path / "other" / "cei"
    other.mkdir(parents=True)
    (other / "a.py").write_text((fakes.folder / "cei/a.py").read_text().replace("so.", "else."))
    assert find(tmp_path / "other")[0].load().paper == "CEI-1 is else."
    forget()
    assert not [name for name in sys.modules if name.startswith("limen_experiments")]


def test_the_folder_is_beside_the_sources():
    assert folder().name in ("experiments", "_experiments")
