# snippet connect
import os
import time

import httpx

from holdfast import Client

client = Client()  # reads HOLDFAST_BASE_URL and HOLDFAST_API_KEY
tenant = client.tenant.get()
print(tenant["timezone"])
print(tenant["currency"])
# end

# snippet catalogue
service = client.services.create({"name": "Kayak tour", "duration_minutes": 120})
unit = client.units.create(
    {
        "name": "Kayak 1",
        "service_ids": [service["id"]],
        "opening_hours": {"sat": [["09:00", "17:00"]]},
    }
)
offer = client.packages.create(
    {
        "name": "Two hours",
        "service_id": service["id"],
        "base_price": {"amount": 8000, "currency": "USD"},
        "deposit_type": "percentage",
        "deposit_value": 2500,
    }
)
# end

# snippet availability
days = client.availability.list(from_="2027-07-03", to="2027-07-03", unit_id=unit["id"])
for slot in days["data"][0]["units"][0]["slots"]:
    print(slot["starts_at"], slot["status"])
# end

# snippet book
customer = client.customers.create(
    {"first_name": "Ada", "last_name": "Lovelace", "email": "ada@example.com"}
)
booking = client.bookings.create(
    {
        "customer_id": customer["id"],
        "unit_id": unit["id"],
        "package_id": offer["id"],
        "event_date": "2027-07-03",
        "event_start_time": "09:00",
    }
)
print(booking["status"])
print(booking["total_amount"]["amount"])
print(booking["deposit_amount"]["amount"])
# end

# snippet intent
intent = client.payment_intents.create(
    {"booking_id": booking["id"], "amount_minor": booking["deposit_amount"]["amount"]}
)
print(intent["status"])
# end

# snippet confirm
response = httpx.post(
    f"{os.environ['STRIPE_URL']}/v1/payment_intents/{intent['id']}/confirm",
    data={
        "key": os.environ["STRIPE_PUBLISHABLE_KEY"],
        "client_secret": intent["client_secret"],
        "payment_method": "pm_card_visa",
    },
)
print(response.raise_for_status().json()["status"])
# end

# snippet event
for _ in range(30):
    events = client.events.list(type=["payment.succeeded"], object_id=intent["id"]).page().data
    if events:
        break
    time.sleep(1)
for event in events:
    if event["type"] == "payment.succeeded":
        print(event["type"], event["data"]["object"]["amount"])
# end

# snippet paid
for _ in range(30):
    booking = client.bookings.get(booking["id"])
    if booking["payment_status"] != "unpaid":
        break
    time.sleep(1)
print(booking["payment_status"])
# end
