import os
import time

from holdfast import Client

client = Client()
unit_id = os.environ["UNIT_ID"]

# snippet freeze
clock = client.test_clock.set({"now": "2027-06-01T12:00:00Z"})
print(str(clock["frozen"]).lower())
booking = client.bookings.create(
    {
        "unit_id": unit_id,
        "event_date": "2027-07-03",
        "event_start_time": "09:00",
        "event_end_time": "11:00",
        "hold_minutes": 30,
    }
)
# end

# snippet advance
clock = client.test_clock.set({"now": "2027-06-01T12:31:00Z"})
print(str(clock["frozen"]).lower())
while booking["status"] != "expired":
    time.sleep(0.2)
    booking = client.bookings.get(booking["id"])
print(booking["status"])
# end

# snippet unfreeze
client.test_clock.delete()
# end
