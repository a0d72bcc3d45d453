import os

from holdfast import Client

client = Client()
unit_id = os.environ["UNIT_ID"]

# snippet create
feed = client.calendar_feeds.create({"name": "Kayak", "unit_id": unit_id})
print(feed["name"])
print(feed["url"])
# end

# snippet delete
client.calendar_feeds.delete(feed["id"])
# end
