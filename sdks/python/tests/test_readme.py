"""Runs the snippets of the README."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import json
import os
import re
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from .platform import Platform

README = Path(__file__).parents[1] / "README.md"


def snippets() -> dict[str, str]:
    """Return the code of the README by its heading."""
    return {m[1]: m[2] for m in re.finditer(r"^## ([^\n]+)\n\n```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)}


PRINTED = {
    "Create a booking": r"bk_\w+ pending",
    "Handle errors": "",
    "Read lists": r"B-\d+\n.*1 False None",
    "Retries": "",
    "Change an object only if it is unchanged": r"200 req_1 .*",
    "Asynchronous client": r"America/New_York .+\n.+",
    "Receive webhooks": "",
    "Follow events": r"evt_\w+ [a-z]+\.[a-z]+",
    "Download documents": "8 bytes",
    "OAuth apps": r"\[.*read:bookings.*\]",
}


class ReadmeTest(unittest.TestCase):
    def setUp(self) -> None:
        self.platform = self.enterContext(Platform())
        self.enterContext(contextlib.chdir(self.enterContext(tempfile.TemporaryDirectory())))
        environment = {"HOLDFAST_API_KEY": "svc_test_key", "HOLDFAST_BASE_URL": self.platform.url + "/api/v1"}
        self.enterContext(mock.patch.dict(os.environ, environment, clear=True))

    def run_snippet(self, code: str) -> tuple[str, dict[str, Any]]:
        names: dict[str, Any] = {"__name__": "snippet"}
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code.replace("https://booking.example", self.platform.url), "README.md", "exec"), names)
        if (client := names.get("client")) is not None:
            client.close()
        return output.getvalue(), names

    def test_each_snippet(self) -> None:
        found = snippets()
        self.assertEqual(list(found), list(PRINTED))
        self.assertGreaterEqual(len(found), 10)
        for heading, code in found.items():
            with self.subTest(heading):
                self.platform.requests.clear()
                output, names = self.run_snippet(code)
                self.assertRegex(output.strip(), re.compile(f"^{PRINTED[heading]}$", re.DOTALL))
                if heading == "Receive webhooks":
                    self.check_receiver(names["receive"])
                else:
                    self.assertTrue(self.platform.requests)
                if heading == "Download documents":
                    self.assertEqual(Path("invoice.pdf").read_bytes(), b"document")

    def check_receiver(self, receive: Any) -> None:
        body = json.dumps({"type": "booking.created", "data": {"object": {"number": "B-000017"}}}).encode()
        at = int(time.time())
        signature = hmac.new(b"whsec_x", f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {"Service-Signature": f"t={at},v1={signature}"}
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertEqual(receive(body, headers, "whsec_x"), 204)
        self.assertEqual(output.getvalue(), "new booking B-000017\n")
        self.assertEqual(receive(body + b" ", headers, "whsec_x"), 400)
