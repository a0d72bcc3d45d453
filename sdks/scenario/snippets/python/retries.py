import uuid

from holdfast import Client, errors

client = Client()
order = f"order-{uuid.uuid4()}"

# snippet key
for _ in range(2):
    response = client.bookings.with_raw_response.create(
        {"event_date": "2027-07-03"}, idempotency_key=order
    )
    print(1 if response.replayed else 0)
# end

# snippet version
booking = response.data
updated = client.bookings.update(booking["id"], {"guest_count": 2}, if_match=response.etag)
print(updated["version"])
try:
    client.bookings.update(booking["id"], {"guest_count": 3}, if_match=response.etag)
except errors.VersionMismatch as error:
    print(error.code)
# end
