from holdfast import Client

client = Client()
last = client.events.list(limit=1).page().data[0]["id"]
client.customers.create({"first_name": "Ada", "email": "ada@example.com"})

# snippet stream
with client.events.stream(type=["customer.created"], last_event_id=last) as events:
    for event in events:
        print(event["type"])
        break  # your program continues
# end
