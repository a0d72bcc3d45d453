import os

from holdfast import Client

client = Client()
service_id, unit_id, package_id = (
    os.environ["SERVICE_ID"],
    os.environ["UNIT_ID"],
    os.environ["PACKAGE_ID"],
)

# snippet rule
rule = client.holiday_rules.create(
    {
        "name": "Summer",
        "date_from": "2027-07-01",
        "date_to": "2027-08-31",
        "multiplier_bps": 12500,
        "applies_to": {"service_ids": [service_id]},
    }
)
print(rule["multiplier_bps"])
# end

# snippet price
booking = client.bookings.create(
    {
        "unit_id": unit_id,
        "package_id": package_id,
        "event_date": "2027-07-03",
        "event_start_time": "09:00",
    }
)
print(booking["total_amount"]["amount"])
print(booking["deposit_amount"]["amount"])
# end
