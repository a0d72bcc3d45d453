"""Proxies of the environment."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest import mock

import holdfast

from .case import ClientCase


class _Proxy(BaseHTTPRequestHandler):
    targets: list[str]

    def do_CONNECT(self) -> None:
        self.targets.append(self.path)
        self.send_error(502)

    def log_message(self, *_: object) -> None:
        pass


class ProxyTest(ClientCase):
    def test_requests_go_through_the_proxy_of_the_environment(self) -> None:
        """HTTPS_PROXY is used unless NO_PROXY names the host."""
        handler = type("Handler", (_Proxy,), {"targets": []})
        proxy = HTTPServer(("127.0.0.1", 0), handler)
        self.addCleanup(proxy.server_close)
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(proxy.shutdown)
        environment = {"HTTPS_PROXY": f"http://127.0.0.1:{proxy.server_port}", "HTTP_PROXY": "", "NO_PROXY": "direct.invalid"}
        with mock.patch.dict("os.environ", environment):
            for host in ("api.invalid", "direct.invalid"):
                client = holdfast.Client(api_key="svc_test_key", base_url=f"https://{host}/api/v1", max_retries=0)
                with client, self.assertRaises(holdfast.APIConnectionError):
                    client.me.get()
        self.assertEqual(handler.targets, ["api.invalid:443"])  # type: ignore[attr-defined]
