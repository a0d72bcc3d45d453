from holdfast import Client

client = Client()

# snippet tour
service = client.services.create({"name": "Seal tour", "duration_minutes": 90})
unit = client.units.create(
    {
        "name": "Puffin",
        "booking_mode": "seats",
        "capacity": 10,
        "service_ids": [service["id"]],
        "opening_hours": {"sat": [["10:00", "16:00"]], "sun": [["10:00", "16:00"]]},
    }
)
seat = client.packages.create(
    {
        "name": "Seat",
        "service_id": service["id"],
        "pricing": "per_guest",
        "base_price": {"amount": 4500, "currency": "USD"},
    }
)
# end

# snippet book
booking = client.bookings.create(
    {
        "unit_id": unit["id"],
        "package_id": seat["id"],
        "event_date": "2027-07-03",
        "event_start_time": "10:00",
        "guest_count": 2,
    }
)
print(booking["status"])
print(booking["total_amount"]["amount"])
# end

# snippet seats
explanation = client.availability.explain(unit_id=unit["id"], starts_at="2027-07-03T10:00:00-04:00")
print(str(explanation["available"]).lower())
seats = explanation["seats"]
if seats:
    print(seats["capacity"], seats["taken"], seats["available"])
# end
