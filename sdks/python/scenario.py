"""Runs the steps of a scenario with the SDK. See ../scenario/README.md.

usage: scenario.py [--async] FILE
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from itertools import islice
from pathlib import Path
from typing import Any

from holdfast import APIError, AsyncClient, Client

LISTS = ("list", "stream")


class Steps:
    """The steps of a scenario, and the values that they save."""

    def __init__(self, path: str, run: str) -> None:
        self.steps: list[dict[str, Any]] = json.loads(Path(path).read_text())["steps"]
        self.values = {"run": run}

    def fill(self, value: Any) -> Any:
        """Return the value with the saved values in place of their names."""
        text = json.dumps(value)
        for name, saved in self.values.items():
            text = text.replace("{" + name + "}", saved)
        return json.loads(text)

    def call(self, step: dict[str, Any]) -> tuple[str, str, list[Any], dict[str, Any]]:
        """Return the resource, the method and the arguments of a step."""
        step = self.fill(step)
        resource, method = step["call"].split(".")
        args = [step[name] for name in ("id", "body") if name in step]
        options = dict(step.get("query", {}))
        for name, option in (("key", "idempotency_key"), ("attempt_timeout", "timeout"), ("after", "last_event_id")):
            if name in step:
                options[option] = step[name]
        return resource, method, args, options

    def finish(self, step: dict[str, Any], started: float, result: dict[str, Any]) -> None:
        """Save the values of a step, and print its result."""
        for name, field in step.get("save", {}).items():
            self.values[name] = result["object"][field]
        print(json.dumps({"step": step["name"], "seconds": time.monotonic() - started, "replayed": False, **result}), flush=True)


def of_rows(rows: list[Any], method: str) -> dict[str, Any]:
    """Return the result of a list or of a stream."""
    ids = [row["data"]["object"]["id"] if method == "stream" else row["id"] for row in rows]
    return {"object": rows[0] if rows else None, "rows": ids}


def of_error(error: APIError) -> dict[str, Any]:
    """Return the result of an error."""
    return {"code": error.code, "param": error.param or ""}


def run(steps: Steps) -> None:
    """Run the steps with the synchronous client."""
    with Client() as client:
        for step in steps.steps:
            started = time.monotonic()
            try:
                result = run_step(client, step, *steps.call(step))
            except APIError as error:
                result = of_error(error)
            steps.finish(step, started, result)


def run_step(client: Client, step: dict[str, Any], resource: str, method: str, args: list[Any], options: dict[str, Any]) -> dict[str, Any]:
    calls = getattr(client, resource)
    if method in LISTS:
        rows: Iterator[Any] = iter(getattr(calls, method)(**options))
        with closing(rows):  # type: ignore[type-var]
            return of_rows(list(islice(rows, step.get("take"))), method)
    response = getattr(calls.with_raw_response, method)(*args, **options)
    return {"object": response.data, "replayed": response.replayed}


async def run_async(steps: Steps) -> None:
    """Run the steps with the asynchronous client."""
    async with AsyncClient() as client:
        for step in steps.steps:
            started = time.monotonic()
            try:
                result = await run_async_step(client, step, *steps.call(step))
            except APIError as error:
                result = of_error(error)
            steps.finish(step, started, result)


async def run_async_step(
    client: AsyncClient, step: dict[str, Any], resource: str, method: str, args: list[Any], options: dict[str, Any]
) -> dict[str, Any]:
    calls = getattr(client, resource)
    if method in LISTS:
        found: list[Any] = []
        rows: AsyncIterator[Any] = aiter(getattr(calls, method)(**options))
        async with aclosing(rows):  # type: ignore[type-var]
            async for row in rows:
                found.append(row)
                if len(found) == step.get("take"):
                    break
        return of_rows(found, method)
    response = await getattr(calls.with_raw_response, method)(*args, **options)
    return {"object": response.data, "replayed": response.replayed}


if __name__ == "__main__":
    scenario = Steps(sys.argv[-1], os.environ["SCENARIO_RUN"])
    if "--async" in sys.argv[1:-1]:
        asyncio.run(run_async(scenario))
    else:
        run(scenario)
