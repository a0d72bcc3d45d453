import os
import time

import httpx

from holdfast import Client

client = Client()
booking = client.bookings.create(
    {
        "unit_id": os.environ["UNIT_ID"],
        "package_id": os.environ["PACKAGE_ID"],
        "event_date": "2027-07-03",
        "event_start_time": "09:00",
    }
)

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

# snippet wait
while intent["status"] != "succeeded":
    time.sleep(1)
    intent = client.payment_intents.get(intent["id"])
print(intent["status"])
# end

# snippet refund
refund = client.refunds.create(
    {"payment_intent_id": intent["id"], "amount_minor": 500, "reason": "requested_by_customer"}
)
print(refund["amount"])
# end

# snippet cash
handed_back = client.refunds.create(
    {
        "booking_id": booking["id"],
        "amount_minor": 300,
        "method": "cash",
        "reference": "receipt-7",
        "reason": "requested_by_customer",
    }
)
print(handed_back["method"], handed_back["reference"])
# end
