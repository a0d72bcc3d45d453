"""Creates a customer and a booking with the generated client, and prints the ID of the booking."""

import os

from client import AuthenticatedClient
from client.api.bookings import create_booking, get_booking
from client.api.customers import create_customer
from client.models import Booking, BookingCreate, Customer, CustomerCreate, ErrorResponse

api = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["API_KEY"])
key = os.environ["KEY"]

customer = create_customer.sync(
    client=api, body=CustomerCreate(first_name="Ada", email="ada@example.com"), idempotency_key=f"{key}-customer"
)
assert isinstance(customer, Customer), customer
booking = create_booking.sync(
    client=api, body=BookingCreate(event_date="2030-06-01", customer_id=customer.id), idempotency_key=f"{key}-booking"
)
assert isinstance(booking, Booking), booking
missing = get_booking.sync("bk_00000000000000000000000000", client=api)
assert isinstance(missing, ErrorResponse) and missing.error.code == "booking_not_found", missing
print(booking.id)
