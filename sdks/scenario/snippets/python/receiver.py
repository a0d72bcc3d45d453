import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from holdfast import Client, WebhookSignatureError, webhooks

secret = ""
received: queue.Queue[str | None] = queue.Queue()


# snippet receive
class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = webhooks.unwrap(body, dict(self.headers), secret)
        except WebhookSignatureError:
            self.send_error(400, "invalid signature")
            return
        if event["type"] == "customer.created":
            received.put(
                event["data"]["object"]["email"]
            )  # hand it to your own queue, then respond
        self.send_response(204)
        self.end_headers()


# end

client = Client()
server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
endpoint = client.webhook_endpoints.create(
    {"url": f"http://127.0.0.1:{server.server_port}/hooks", "event_types": ["customer.created"]}
)
secret = endpoint["secret"]
client.customers.create({"first_name": "Ada", "email": "receiver@example.com"})
while (email := received.get(timeout=60)) != "receiver@example.com":
    pass
print(email)
client.webhook_endpoints.delete(endpoint["id"])
