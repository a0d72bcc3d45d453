import os

from holdfast import APIError, Client, SlotUnavailable

client = Client()
unit_id = os.environ["UNIT_ID"]

# snippet handle
for _ in range(2):
    try:
        booking = client.bookings.create(
            {
                "unit_id": unit_id,
                "event_date": "2027-07-03",
                "event_start_time": "09:00",
                "event_end_time": "11:00",
            }
        )
        print(booking["status"])
    except SlotUnavailable as error:
        print(error.code)  # offer another time
# end

# snippet fields
try:
    client.customers.create({"first_name": "Ada", "email": "ada"})
except APIError as error:
    print(error.code)
    print(error.param)
# end
