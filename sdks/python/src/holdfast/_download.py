"""Documents other than JSON, such as PDF and CSV."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import httpx

from ._errors import APIConnectionError, APITimeoutError


def _broken(error: httpx.RequestError) -> APIConnectionError:
    kind = APITimeoutError if isinstance(error, httpx.TimeoutException) else APIConnectionError
    return kind(f"The document was not received completely: {error or type(error).__name__}")


def _temporary(path: str | os.PathLike[str]) -> IO[bytes]:
    target = Path(path)
    return NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False)


class Download:
    """A document. Each of its methods requests it."""

    def __init__(self, connect: Callable[[], httpx.Response]) -> None:
        self._connect = connect

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the parts of the document. If the transfer fails, discard what you received."""
        response = self._connect()
        try:
            yield from response.iter_bytes()
        except httpx.RequestError as error:
            raise _broken(error) from error
        finally:
            response.close()

    def read(self) -> bytes:
        """Return the document."""
        return b"".join(self.iter_bytes())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document to a file. The file is only created if the transfer is complete."""
        with _temporary(path) as file:
            try:
                for chunk in self.iter_bytes():
                    file.write(chunk)
                file.close()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise


class AsyncDownload:
    """A document. Each of its methods requests it."""

    def __init__(self, connect: Callable[[], Awaitable[httpx.Response]]) -> None:
        self._connect = connect

    async def iter_bytes(self) -> AsyncIterator[bytes]:
        """Yield the parts of the document. If the transfer fails, discard what you received."""
        response = await self._connect()
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx.RequestError as error:
            raise _broken(error) from error
        finally:
            await response.aclose()

    async def read(self) -> bytes:
        """Return the document."""
        return b"".join([chunk async for chunk in self.iter_bytes()])

    async def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document to a file. The file is only created if the transfer is complete."""
        with _temporary(path) as file:
            try:
                async for chunk in self.iter_bytes():
                    file.write(chunk)
                file.close()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
