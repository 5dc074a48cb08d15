"""What is refused by all dynamic partitions alike: groups, subscribers and numbers that cannot be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from limen.partitions import lazy, refined
from limen.partitions.hotspots import Hotspots
from limen.partitions.lazy import LazyPartition
from limen.partitions.partition import Changes, Partition
from limen.partitions.refined import RefinedPartition

from .by_hand import as_found, snapshot

partitions = pytest.mark.parametrize(
    "made", [RefinedPartition, LazyPartition, lambda: Hotspots(0.5)], ids=["refined", "lazy", "hot"]
)
Made = Callable[[], Partition]


@partitions
@pytest.mark.parametrize("bad", ["a", 1.0, None, True, [0], -1, 5, 2**40, 2**70, np.int64(7)])
def test_there_is_no_such_group(made: Made, bad: object) -> None:
    partition = made()
    partition.insert([0, 1], [1, 50], [2, 60])
    with pytest.raises(ValueError, match="there is no group"):
        partition.members(bad)  # type: ignore[arg-type]
    for group in partition.groups().group:  # of numpy's integers
        assert len(partition.members(group)) == 1


@partitions
def test_subscribers(made: Made) -> None:
    partition, told = made(), []
    for bad in (None, 5):
        with pytest.raises(ValueError, match=f"called with the changes; {bad} cannot be"):
            partition.subscribe(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not subscribed to this partition"):
        partition.unsubscribe(told.append)
    partition.subscribe(told.append)
    partition.insert([0], [1], [2])
    partition.unsubscribe(told.append)
    partition.insert([1], [1], [2])
    assert len(told) == 1


@partitions
def test_what_is_asked_of_groups_and_numbers_that_are_not_there(made: Made) -> None:
    partition = made()
    partition.insert([0, 1], [1, 50], [2, 60])
    groups = partition.groups().group
    assert partition.has_groups([*groups.tolist(), 7, -1]).tolist() == [True, True, False, False]
    assert partition.has([0, 7, -1]).tolist() == [True, False, False]
    assert sorted(partition.points(groups.tolist()).tolist()) == [2, 60]
    with pytest.raises(ValueError, match="there is no group 50"):
        partition.points([50])
    if isinstance(partition, RefinedPartition):
        with pytest.raises(ValueError, match="there is no group 50"):
            partition.common([50])
        with pytest.raises(ValueError, match="id 50 is not in the partition"):
            partition.ends([50])


@partitions
def test_all_are_told_although_one_is_interrupted(made: Made) -> None:
    """What is done, that is: what was left of the batch is not."""
    partition, told = made(), []

    def interrupted(changes: Changes) -> None:
        raise KeyboardInterrupt

    partition.subscribe(interrupted)
    partition.subscribe(told.append)
    with pytest.raises(KeyboardInterrupt):
        partition.insert([0], [1], [2])
    assert partition.ids().tolist() == [0]
    assert len(told) == 1


@partitions
def test_who_is_told_cannot_change_what_others_are_told(made: Made) -> None:
    partition, told = made(), []
    partition.subscribe(told.append)
    partition.insert([3], [1], [2])
    with pytest.raises(ValueError, match="read-only"):
        told[0].interval[0] = 7


@partitions
def test_numbers_for_which_there_is_no_memory(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so and changes nothing."""
    real, state = refined.with_room, refined._state

    def with_room(array: np.ndarray, n: int) -> np.ndarray:
        if n > 10**9:
            raise MemoryError("Unable to allocate 128. GiB")
        return real(array, n)

    def made_anew(rows: int, groups: int) -> object:
        if rows > 10**9:
            raise MemoryError("Unable to allocate 128. GiB")
        return state(rows, groups)

    partition = made()
    partition.insert([0, 1], [1, 50], [2, 60])
    for module in (refined, lazy):
        monkeypatch.setattr(module, "with_room", with_room)
    monkeypatch.setattr("limen.partitions.partition.with_room", with_room)
    monkeypatch.setattr(refined, "_state", made_anew)
    before = snapshot(partition)
    for change in (partition.insert, partition.build):
        with pytest.raises(MemoryError, match=r"the number 2147483647: .* small ones"):
            change([2, 2**31 - 1], [1, 1], [2, 2])
        assert snapshot(partition) == before
    partition.insert([2], [55], [70])
    assert as_found(partition) == [(2, {0}), (60, {1, 2})]
