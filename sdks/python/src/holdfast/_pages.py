"""Lists, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ._errors import InvalidResponseError
from ._response import Response

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list."""

    data: list[T]
    """The objects of the page."""
    has_more: bool
    """Whether another page follows."""
    next_cursor: str | None
    """The ``cursor`` of the next page, or None."""
    response: Response[Any]
    """The whole response."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


def page_of(response: Response[Any]) -> Page[Any]:
    """Return the page of a response."""
    body = response.data
    if not isinstance(body, dict) or not isinstance(body.get("data"), list):
        raise InvalidResponseError(f"The response is not a page of a list: {response.content[:100]!r}.")
    more = body.get("has_more") is True
    cursor = body.get("next_cursor")
    return Page(body["data"], more, cursor if isinstance(cursor, str) else None, response)


def _following(page: Page[Any], cursor: str | None) -> str | None:
    """Return the cursor of the page that follows, or None after the last page."""
    if not page.has_more:
        return None
    if page.next_cursor in (None, "", cursor):
        raise InvalidResponseError("The page says that more follow, but has no new cursor.")
    return page.next_cursor


class Pages(Generic[T]):
    """A list. A loop over it yields its objects and requests a page only when the loop arrives there."""

    def __init__(self, fetch: Callable[[str | None], Page[T]], cursor: str | None) -> None:
        self._fetch = fetch
        self._cursor = cursor

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.data

    def pages(self) -> Iterator[Page[T]]:
        """Yield page after page."""
        cursor = self._cursor
        while True:
            page = self._fetch(cursor)
            cursor = _following(page, cursor)
            yield page
            if cursor is None:
                return
            del page  # Only one page is in memory.

    def page(self) -> Page[T]:
        """Request and return one page: the first, or that of ``cursor``."""
        return self._fetch(self._cursor)


class AsyncPages(Generic[T]):
    """A list. A loop over it yields its objects and requests a page only when the loop arrives there."""

    def __init__(self, fetch: Callable[[str | None], Awaitable[Page[T]]], cursor: str | None) -> None:
        self._fetch = fetch
        self._cursor = cursor

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.data:
                yield item

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Yield page after page."""
        cursor = self._cursor
        while True:
            page = await self._fetch(cursor)
            cursor = _following(page, cursor)
            yield page
            if cursor is None:
                return
            del page  # Only one page is in memory.

    async def page(self) -> Page[T]:
        """Request and return one page: the first, or that of ``cursor``."""
        return await self._fetch(self._cursor)
