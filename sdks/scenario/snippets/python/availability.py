import os

from holdfast import Client

client = Client()
service_id, unit_id = os.environ["SERVICE_ID"], os.environ["UNIT_ID"]

# snippet days
days = client.availability.list(from_="2027-07-03", to="2027-07-04", service_id=service_id)
for day in days["data"]:
    print(day["date"], day["status"], day["price_from"]["amount"] if day["price_from"] else None)
# end

# snippet explain
explanation = client.availability.explain(unit_id=unit_id, starts_at="2027-07-04T09:00:00-04:00")
print(str(explanation["available"]).lower())
print(explanation["reason"])
# end
