from holdfast import Client

client = Client()

# snippet book
local = client.bookings.create(
    {"event_date": "2027-07-03", "event_start_time": "09:00", "event_end_time": "11:00"}
)
print(local["starts_at"])
print(local["ends_at"])
absolute = client.bookings.create(
    {"starts_at": "2027-07-03T09:00:00-04:00", "ends_at": "2027-07-03T11:00:00-04:00"}
)
print(absolute["event_start_time"])
print(absolute["event_end_time"])
# end
