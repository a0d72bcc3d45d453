import os

from holdfast import Client

client = Client()
since = os.environ["SINCE"]

# snippet iterate
n = 0
for customer in client.customers.list(q=os.environ["RUN"], limit=2):
    if customer["id"]:
        n += 1
print(n)
# end

# snippet sync
newest = since
for customer in client.customers.list(sort="updated_at", updated_after=since, limit=100):
    newest = customer["updated_at"]  # store the customer, then continue here the next time
print(str(newest > "2026").lower())
# end
