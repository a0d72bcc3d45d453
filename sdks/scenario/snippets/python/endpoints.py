from holdfast import Client

client = Client()

# snippet register
endpoint = client.webhook_endpoints.create(
    {"url": "https://app.example/hooks", "event_types": ["booking.created", "payment.succeeded"]}
)
print(endpoint["status"])
secret = endpoint["secret"]  # the only response with the secret
# end

if not secret.startswith("whsec_"):
    raise SystemExit("no secret")
client.webhook_endpoints.delete(endpoint["id"])
