import os

from holdfast import Client

client = Client()
unit_id = os.environ["UNIT_ID"]

# snippet days
closure = client.closures.create(
    {
        "name": "Winter break",
        "unit_ids": [unit_id],
        "date_from": "2027-12-24",
        "date_to": "2028-01-01",
    }
)
print(closure["starts_at"])
print(closure["ends_at"])
# end

# snippet change
closure = client.closures.update(closure["id"], {"date_to": "2028-01-03"})
print(closure["ends_at"])
# end
