# snippet me
import os

from holdfast import Client

client = Client(base_url=os.environ["HOLDFAST_BASE_URL"], api_key=os.environ["HOLDFAST_API_KEY"])
me = client.me.get()
print(me["type"])
print(me["mode"])
# end
