"""Layouts: their names, what an update does to which sub-index (Appendix B), and the choice of one."""

from __future__ import annotations

from itertools import pairwise

import pytest

from limen.archive import LAYOUTS, ArchiveError, Layout, choose, layouts

from .by_hand import STEPS, Appendix, names

SIDES = [(1, 1), (2, 2), (4, 4), (2, 4), (4, 2), (8, 1), (1, 8), (3, 3), (3, 2), (2, 5), (7, 3)]
DIVISORS = [1, 2, 3, 4, 6, 12]


def _layout(name: str, rows: int, columns: int) -> Layout | None:
    """One with these sides, if the name has such."""
    choices = LAYOUTS[name]
    if (choices.generation == layouts.LAZY and rows < 2) or (
        (choices.rivals == "rows" and columns > 1) or (choices.rivals == "columns" and rows > 1)
    ):
        return None
    return Layout(name, rows, columns)


def _all(sides: list[tuple[int, int]]) -> list[Layout]:
    return [
        layout for name in LAYOUTS for side in sides for layout in [_layout(name, *side)] if layout
    ]


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", _all(SIDES), ids=str)
def test_a_layout_is_its_name(layout):
    for text in (str(layout), str(layout).lower(), f" {layout} "):
        assert Layout.of(text) == layout
    assert Layout.of(layout) is layout
    assert repr(layout) == f"Layout('{layout}')"


@pytest.mark.parametrize(
    ("text", "name", "rows", "columns"),
    [
        ("NoRebuild 3 x 5", "NoRebuild", 3, 5),
        ("chronological4x2", "ChronologicalRebuild", 4, 2),
        ("REINDEX 9", "R-ins", 9, 1),
        ("del7", "D-ins", 7, 1),
        ("r-EXP5", "R-exp", 1, 5),
        ("D-exp5", "D-exp", 1, 5),
        ("WATA 4", "WATA", 4, 1),
    ],
)
def test_other_spellings(text, name, rows, columns):
    layout = Layout.of(text)
    assert (layout.name, layout.rows, layout.columns) == (name, rows, columns)


@pytest.mark.parametrize("text", ["", "B-tree4x4", "4x4", "Rebuild-4x4", "Rebuild4x4x4", 16, None])
def test_no_such_layout(text):
    with pytest.raises(ArchiveError, match=r"there is no layout .* there are Rebuild, NoRebuild"):
        Layout.of(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Rebuild", "Rebuild has rows and columns, such as Rebuild4x4"),
        ("Rebuild4", "Rebuild has rows and columns, such as Rebuild4x4"),
        ("R-ins", "R-ins has one number of partitions, such as R-ins4"),
        ("WATA2x2", "WATA has one number of partitions, such as WATA4"),
        ("D-exp3x1", "D-exp has one number of partitions, such as D-exp4"),
        ("Rebuild0x4", "1 to 1024 sub-indices"),
        ("Rebuild4x0", "1 to 1024 sub-indices"),
        ("R-exp0", "1 to 1024 sub-indices"),
        ("Rebuild40x40", "1 to 1024 sub-indices"),
        ("LazyRebuild1x4", "a lazy layout has at least two rows"),
        ("LazyNoRebuild1x1", "a lazy layout has at least two rows"),
        ("WATA1", "a lazy layout has at least two rows"),
    ],
)
def test_wrong_numbers(text, told):
    with pytest.raises(ArchiveError, match=told):
        Layout.of(text)


@pytest.mark.parametrize("text", ["Rebuild9x2", "NoRebuild2x9", "R-ins9", "D-exp9", "WATA9"])
def test_no_more_partitions_than_updates(text):
    layout = Layout.of(text)
    layout.check(9, False)
    with pytest.raises(ArchiveError, match=f"{text}: a window has 8 updates, so at most 8 rows"):
        layout.check(8, False)


@pytest.mark.parametrize("name", LAYOUTS)
def test_counted_windows_are_not_for_lazy_layouts(name):
    layout = next(found for side in SIDES for found in [_layout(name, *side)] if found)
    if layout.is_lazy:
        with pytest.raises(ArchiveError, match=f"{layout}: the lazy layouts are for windows of ti"):
            layout.check(8, True)
    else:
        layout.check(8, True)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (("x", 1, 1), "there is no layout 'x'"),
        (("Rebuild", -2, -1), "an archive has 1 to 1024 sub-indices"),
        (("Rebuild", 2.0, 1), "rows and columns are integers"),
        (("R-ins", 2, 3), "R-ins has rows only, not 2 x 3"),
        (("D-exp", 2, 3), "D-exp has columns only, not 2 x 3"),
    ],
)
def test_a_layout_that_cannot_be(said, told):
    with pytest.raises(ArchiveError, match=told):
        Layout(*said)


def test_the_choices_are_those_of_table_1():
    table = {
        "Rebuild": ("round-robin", "round-robin", True),
        "NoRebuild": ("round-robin", "round-robin", False),
        "LazyRebuild": ("lazy", "round-robin", True),
        "LazyNoRebuild": ("lazy", "round-robin", False),
        "CountRebuild": ("round-robin", "chronological", True),
        "CountNoRebuild": ("round-robin", "chronological", False),
    }
    assert {name: tuple(LAYOUTS[name])[:3] for name in table} == table


# -- what an update does -------------------------------------------------------------------------


def _updates(layout: Layout, steps: int, upto: int, slack: int = 0):
    """The plans of the updates from the first on."""
    stretches = layouts.initial(layout, steps).stretches
    for step in range(1, upto + 1):
        plan = layouts.update(layout, steps, stretches, step, step, slack)
        stretches = plan.stretches
        yield step, plan


def _count(layout: Layout) -> int:
    return layout.rows + layout.columns - (2 if LAYOUTS[layout.name].generation == "lazy" else 1)


@pytest.mark.parametrize("steps", [8, 9, 12])
@pytest.mark.parametrize("name", LAYOUTS)
def test_an_update_touches_g_and_e_less_one(name, steps):
    sides = [(g, e) for g in range(1, steps + 1) for e in range(1, steps + 1)]
    for layout in (found for side in sides for found in [_layout(name, *side)] if found):
        for _, plan in _updates(layout, steps, 3 * steps):
            assert len(plan.touched(layout)) == layout.touched == _count(layout)


def _appendix(layout: Layout, steps: int) -> Appendix:
    choices = LAYOUTS[layout.name]
    return Appendix(
        layout.rows,
        layout.columns,
        steps,
        generation=choices.generation,
        expiration=choices.expiration,
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_updates_are_those_of_appendix_b(name):
    steps = 12
    rows = range(2, 13) if LAYOUTS[name].generation == "lazy" else DIVISORS
    for layout in (f for g in rows for e in DIVISORS for f in [_layout(name, g, e)] if f):
        paper = _appendix(layout, steps)
        begun = layouts.initial(layout, steps)
        assert begun.rows == {s: paper.row_of(s) for s in range(1 - steps, 1)}
        for step, plan in _updates(layout, steps, 3 * steps):
            expired, inserted = paper.update(step)
            assert {(plan.rows[step], c) for c in range(layout.columns)} == inserted
            assert plan.examined | {(r, c) for r, c in expired if r in plan.dropped} == expired
            assert plan.touched(layout) == expired | inserted
            due = range(step + 1, step + steps + 1)
            assert [layout.column_of(s, steps) for s in due] == [paper.column_of(s) for s in due]


@pytest.mark.parametrize("name", ["CountRebuild", "CountNoRebuild", "Rebuild", "D-ins", "R-exp"])
def test_counted_windows_look_at_the_range_r(name):
    """The updates before and after this one too, wherever their estimates lie."""
    steps = 12
    for layout in (f for g in DIVISORS for e in DIVISORS for f in [_layout(name, g, e)] if f):
        paper = _appendix(layout, steps)
        for step, plan in _updates(layout, steps, 3 * steps, slack=1):
            expired, inserted = paper.update(step, around=1)
            assert plan.examined == expired
            assert plan.touched(layout) == expired | inserted


@pytest.mark.parametrize("name", ["Rebuild", "NoRebuild"])
def test_no_sub_index_is_met_twice_in_a_row(name):
    """By insertion, nor by expiration, whether or not the numbers divide the window."""
    for side in [(2, 2), (3, 3), (2, 5), (5, 2), (4, 4), (7, 3)]:
        layout, last = Layout(name, *side), None
        for step, plan in _updates(layout, 8, 40):
            here = plan.rows[step], {column for _, column in plan.examined}
            assert last is None or (here[0] != last[0] and not here[1] & last[1])
            last = here


@pytest.mark.parametrize("layout", [lay for lay in _all(SIDES) if lay.is_lazy], ids=str)
def test_a_lazy_row_is_thrown_away_when_all_of_it_has_gone(layout):
    begin = layouts.initial(layout, STEPS).stretches
    longest = max(b - a + 1 for a, b in begin)
    for step, plan in _updates(layout, STEPS, 5 * STEPS):
        spans = sorted(plan.stretches)
        assert spans[-1][1] == step and len(spans) == layout.rows
        assert all(b + 1 == a for (_, b), (a, _) in pairwise(spans))
        assert spans[0][1] > step - STEPS  # something of the oldest is alive
        assert (
            spans[0][0] > step - STEPS - longest
        )  # and less than one stretch lies there for nothing
        assert all(b - a + 1 <= longest for a, b in spans)


@pytest.mark.parametrize("layout", _all([(2, 2), (3, 3), (4, 2), (5, 1), (1, 5)]), ids=str)
@pytest.mark.parametrize("periods", [2, 3, 7])
def test_several_updates_at_once_are_each_of_them(layout, periods):
    """All that one by one would be examined is, or is thrown away; rows are the same afterwards."""
    first = layouts.initial(layout, STEPS).stretches
    whole = layouts.update(layout, STEPS, first, 1, periods)
    plans = dict(_updates(layout, STEPS, periods))
    assert whole.stretches == plans[periods].stretches
    assert whole.rows == {step: plan.rows[step] for step, plan in plans.items()}
    assert whole.dropped == {row for plan in plans.values() for row in plan.dropped}
    each = {cell for plan in plans.values() for cell in plan.examined}
    assert {cell for cell in each if cell[0] not in whole.dropped} == whole.examined


@pytest.mark.parametrize("layout", _all([(2, 2), (3, 3), (4, 2), (5, 1), (1, 5)]), ids=str)
@pytest.mark.parametrize("periods", [8, 9, 20, 10**15])
def test_a_window_and_more_at_once_is_an_initial_stage(layout, periods):
    """All of before has gone, so all is examined; new results lie as those of a first update do."""
    first = layouts.initial(layout, STEPS).stretches
    whole = layouts.update(layout, STEPS, first, 1, periods)
    assert whole.examined == {(r, c) for r in range(layout.rows) for c in range(layout.columns)}
    begun = layouts.initial(layout, STEPS, periods)
    assert (whole.rows, whole.stretches) == (begun.rows, begun.stretches) and not whole.dropped
    assert sorted(whole.rows) == list(range(periods + 1 - STEPS, periods + 1))


# -- the paper's figures: 16 minutes, every 2, the initial stage at 16 ---------------------------


def _figure(text: str, upto: int, slack: int = 0) -> dict[int, tuple[set[str], set[str]]]:
    """By time: what is expired from, and inserted into."""
    layout = Layout.of(text)
    return {
        16 + 2 * step: (
            names(plan.examined, layout.columns),
            names(((plan.rows[step], c) for c in range(layout.columns)), layout.columns),
        )
        for step, plan in _updates(layout, STEPS, upto, slack)
    }


@pytest.mark.parametrize("text", ["R-ins4", "D-ins4"])
def test_figure_1(text):
    """Partitioned by insertion: four updates of 2 minutes go round in pairs. Expirations are anywhere."""
    into = {time: inserted for time, (_, inserted) in _figure(text, 8).items()}
    pairs = {18: "I1", 20: "I1", 22: "I2", 24: "I2", 26: "I3", 28: "I3", 30: "I4", 32: "I4"}
    assert into == {time: {name} for time, name in pairs.items()}
    assert all(expired == {"I1", "I2", "I3", "I4"} for expired, _ in _figure(text, 8).values())


def test_figure_1_by_expiration():
    found = _figure("R-exp4", 8)
    assert [found[time][0] for time in (18, 20, 22, 24)] == [{"I1"}, {"I1"}, {"I2"}, {"I2"}]
    assert all(inserted == {"I1", "I2", "I3", "I4"} for _, inserted in found.values())


def test_figure_2():
    """WATA: insertions go to I4 until all of I1 has gone, at 22."""
    layout = Layout.of("WATA4")
    assert layouts.initial(layout, STEPS).stretches == [(-7, -5), (-4, -3), (-2, -1), (0, 0)]
    found = _figure("WATA4", 3)
    assert found[18] == found[20] == ({"I2", "I3", "I4"}, {"I4"})
    assert found[22][1] == {"I1"}
    plans = dict(_updates(layout, STEPS, 3))
    assert [plans[step].dropped for step in (1, 2, 3)] == [set(), set(), {0}]


@pytest.mark.parametrize("text", ["ChronologicalRebuild2x2", "ChronologicalNoRebuild2x2"])
def test_figure_3(text):
    found = _figure(text, 8)
    for time in (18, 20, 22, 24):
        assert found[time] == ({"I1", "I3"}, {"I1", "I2"})
    for time in (26, 28, 30, 32):
        assert found[time] == ({"I2", "I4"}, {"I3", "I4"})


@pytest.mark.parametrize("text", ["Rebuild2x2", "NoRebuild2x2"])
def test_figure_4(text):
    found = _figure(text, 8)
    for time in (18, 22, 26, 30):
        assert found[time] == ({"I1", "I3"}, {"I1", "I2"})
    for time in (20, 24, 28, 32):
        assert found[time] == ({"I2", "I4"}, {"I3", "I4"})


@pytest.mark.parametrize("text", ["LazyRebuild2x2", "LazyNoRebuild2x2"])
def test_figure_5(text):
    """I1 and I2 rest until 30, when all of them has gone."""
    layout = Layout.of(text)
    assert layouts.initial(layout, STEPS).stretches == [(-7, -1), (0, 0)]
    found = _figure(text, 8)
    for time in (18, 22, 26):
        assert found[time] == ({"I3"}, {"I3", "I4"})
    for time in (20, 24, 28):
        assert found[time] == ({"I4"}, {"I3", "I4"})
    assert found[30] == (set(), {"I1", "I2"})  # what is thrown away is not looked at
    assert found[32] == ({"I2"}, {"I1", "I2"})
    plans = dict(_updates(layout, STEPS, 8))
    assert [step for step, plan in plans.items() if plan.dropped] == [7]


@pytest.mark.parametrize("text", ["Rebuild2x2", "NoRebuild2x2"])
def test_figure_6(text):
    """A range of estimates meets all sub-indices if columns go round."""
    everything = {"I1", "I2", "I3", "I4"}
    assert all(expired == everything for expired, _ in _figure(text, 16, slack=1).values())


@pytest.mark.parametrize("text", ["CountRebuild2x2", "CountNoRebuild2x2"])
def test_figure_7(text):
    steady = _figure(text, 8)
    assert steady[18] == ({"I1", "I3"}, {"I1", "I2"})
    assert steady[20] == ({"I1", "I3"}, {"I3", "I4"})
    bounded = _figure(text, 8, slack=1)
    assert bounded[20] == ({"I1", "I3"}, {"I3", "I4"})  # 17 to 22
    assert bounded[22] == ({"I1", "I3"}, {"I1", "I2"})  # 19 to 24
    assert bounded[24][0] == {"I1", "I2", "I3", "I4"}  # 21 to 26: both columns
    assert bounded[28] == ({"I2", "I4"}, {"I3", "I4"})


# -- the choice ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "text", "words"),
    [
        ((5e8, 2), "NoRebuild4x4", ["small", "few", "update times"]),
        ((0, 1), "NoRebuild4x4", ["small", "few"]),
        ((5e8, 1000), "Rebuild2x2", ["small", "many", "probes and scans must be quick"]),
        ((5e9, 2), "NoRebuild3x3", ["large", "few", "fewer sub-indices"]),
        ((5e9, 1000), "NoRebuild2x2", ["large", "many", "balances"]),
    ],
)
def test_section_5_8(asked, text, words):
    for counted in (False, True):
        layout, why = choose(*asked, count_based=counted)
        assert str(layout) == ("Count" if counted else "") + text
        assert all(word in why for word in words)
        assert ("estimated expirations" in why) == counted
        layout.check(36, counted)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ((2e9, 10), "NoRebuild4x4"),  # both at the limit: a small window, few queries
        ((2.001e9, 10), "NoRebuild3x3"),
        ((2e9, 10.5), "Rebuild2x2"),
        ((2.001e9, 10.5), "NoRebuild2x2"),
    ],
)
def test_where_small_ends_and_many_begins(asked, text):
    """Between the paper's windows of 0.5 and 5 GB, and its 2 and more than 10 queries."""
    assert str(choose(*asked).layout) == text


def test_section_5_8_with_more_said():
    layout, why = choose(5e8, 2, space=True)
    assert str(layout) == "LazyNoRebuild4x4" and "expired results may lie" in why
    assert str(choose(5e9, 2, space=True).layout) == "NoRebuild3x3"  # too much for a large window
    assert str(choose(5e8, 2, space=True, count_based=True).layout) == "CountNoRebuild4x4"
    layout, why = choose(5e9, 1000, probes_first=True)
    assert str(layout) == "Rebuild2x2" and "quick probes are asked for" in why
    assert str(choose(5e9, 1000, probes_first=True, count_based=True).layout) == "CountRebuild2x2"


@pytest.mark.parametrize("steps", ["a", 0, 1.5, None, True])
def test_a_number_of_updates_that_is_none(steps):
    with pytest.raises(ArchiveError, match=f"steps={steps!r}: the number of updates of a window"):
        choose(1, 1, steps=steps)


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
@pytest.mark.parametrize("space", [False, True])
@pytest.mark.parametrize("asked", [(5e8, 2), (5e8, 1000), (5e9, 2), (5e9, 1000)])
def test_a_choice_fits_a_window_of_few_updates(asked, space, steps):
    layout, _ = choose(*asked, space=space, steps=steps)
    layout.check(steps, False)
    assert layout.rows == layout.columns <= steps
