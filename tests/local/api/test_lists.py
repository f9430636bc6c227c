"""Lists: pages, cursors, filters."""

from __future__ import annotations

import pytest

from sandbox.local.api.bodies import SandboxQuery
from sandbox.local.api.paging import sandbox_page
from sandbox.local.control.records import NetworkSettings, SandboxRecord
from sandbox.local.control.states import DesiredState, SandboxState
from sandbox.local.wire_errors import WireError


def record(number: int, **changes: object) -> SandboxRecord:
    made = SandboxRecord(
        id=f"id-{number:03}",
        name=f"box-{number:03}",
        state=SandboxState.STARTED,
        desired_state=DesiredState.STARTED,
        created_at=float(number),
        updated_at=float(number),
        last_activity_at=float(number // 3),  # many are equal: the order must still be total
        network=NetworkSettings(),
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


RECORDS = [record(number) for number in range(10)]


def pages(records: list[SandboxRecord], **query: object) -> list[list[str]]:
    found, cursor = [], None
    while True:
        page, cursor = sandbox_page(
            records, SandboxQuery.model_validate(query | ({"cursor": cursor} if cursor else {}))
        )
        found.append([item.id for item in page])
        if cursor is None:
            return found


@pytest.mark.parametrize("sort", ["name", "cpu", "memoryGib", "diskGib", "lastActivityAt", "createdAt"])
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 3, 5, 10, 200])
def test_every_item_comes_once(sort: str, order: str, limit: int) -> None:
    found = pages(RECORDS, sort=sort, order=order, limit=limit)
    ids = [item for page in found for item in page]
    assert sorted(ids) == [item.id for item in RECORDS]
    assert all(len(page) == limit for page in found[:-1])
    if sort in ("name", "createdAt"):
        assert ids == sorted(ids, reverse=order == "desc")


def test_a_deleted_item_hides_no_other() -> None:
    page, cursor = sandbox_page(RECORDS, SandboxQuery(limit=4, sort="name", order="asc"))
    rest = [item for item in RECORDS if item.id not in ("id-003", "id-004")]
    following, _ = sandbox_page(rest, SandboxQuery(limit=4, sort="name", order="asc", cursor=cursor))
    assert [item.id for item in page] == ["id-000", "id-001", "id-002", "id-003"]
    assert [item.id for item in following] == ["id-005", "id-006", "id-007", "id-008"]


@pytest.mark.parametrize("cursor", ["x", "e30=", "WzEsMl0=", "ü"])
def test_a_foreign_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(WireError) as caught:
        sandbox_page(RECORDS, SandboxQuery(cursor=cursor))
    assert caught.value.status == 400


def test_a_cursor_of_another_order_is_refused() -> None:
    _, cursor = sandbox_page(RECORDS, SandboxQuery(limit=2, sort="name"))
    with pytest.raises(WireError):
        sandbox_page(RECORDS, SandboxQuery(limit=2, sort="createdAt", cursor=cursor))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"name": "BOX-00"}, "0123456789"),
        ({"name": "box-003"}, "3"),
        ({"id": "ID-004"}, "4"),
        ({"labels": '{"team": "a"}'}, "12"),
        ({"labels": '{"team": "a", "extra": "x"}'}, "2"),
        ({"states": ["stopped", "error"]}, "56"),
        ({"snapshots": ["snap"]}, "7"),
        ({"regionIds": ["elsewhere"]}, ""),
        ({"regionIds": ["elsewhere", "local"]}, "0123456789"),
        ({"sandboxClasses": ["windows"]}, ""),
        ({"minCpu": "2"}, "8"),
        ({"maxCpu": "1", "minMemoryGiB": "2"}, "9"),
        ({"isPublic": "true"}, "0"),
        ({"isRecoverable": "true"}, "6"),
        ({"createdAtAfter": "1970-01-01T00:00:08.000000+0000"}, "89"),
        ({"createdAtBefore": "1970-01-01T00:00:01Z"}, "01"),
        ({"lastEventAfter": "1970-01-01T01:00:03.000 0100"}, "9"),
        ({"autoDestroyAtAfter": "1970-01-01T00:00:00Z"}, "3"),
        ({"includeErroredDeleted": "true", "name": "gone"}, "x"),
        ({"name": "gone"}, ""),
    ],
)
def test_filters(query: dict[str, object], expected: str) -> None:
    records = [record(number) for number in range(10)]
    records[0].public = True
    records[1].labels = {"team": "a"}
    records[2].labels = {"team": "a", "extra": "x"}
    records[3].destroy_at = 5.0
    records[5].state = SandboxState.STOPPED
    records[6].state, records[6].recoverable = SandboxState.ERROR, True
    records[7].snapshot = "snap"
    records[8].cpu = 2
    records[9].memory = 2
    gone = record(99, name="gone", state=SandboxState.ERROR, desired_state=DesiredState.DESTROYED)
    page, _ = sandbox_page([*records, gone], SandboxQuery.model_validate(query))
    assert "".join(sorted("x" if item is gone else item.id[-1] for item in page)) == expected


@pytest.mark.parametrize(
    "query", [{"labels": "{"}, {"labels": '{"a": 1}'}, {"labels": "[]"}, {"states": ["destroyed"]}]
)
def test_filters_that_are_wrong(query: dict[str, object]) -> None:
    with pytest.raises(WireError):
        sandbox_page(RECORDS, SandboxQuery.model_validate(query))
