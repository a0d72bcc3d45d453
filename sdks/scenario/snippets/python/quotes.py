import os

from holdfast import Client

client = Client()
customer_id, unit_id, package_id = (
    os.environ["CUSTOMER_ID"],
    os.environ["UNIT_ID"],
    os.environ["PACKAGE_ID"],
)

# snippet quote
quote = client.quotes.create(
    {
        "customer_id": customer_id,
        "unit_id": unit_id,
        "package_id": package_id,
        "event_date": "2027-07-03",
        "event_start_time": "09:00",
    }
)
quote = client.quotes.send(quote["id"])
print(quote["status"])
# end

# snippet accept
quote = client.quotes.accept(quote["id"])
print(quote["status"])
invoice = client.invoices.get(quote["invoice_ids"][0])
print(invoice["kind"])
print(invoice["status"])
print(invoice["amount_due"]["amount"])
# end

# snippet pay
invoice = client.invoices.record_payment(
    invoice["id"], {"amount": {"amount": 2000, "currency": "USD"}, "method": "cash"}
)
print(invoice["status"])
client.invoices.get_pdf(invoice["id"]).save("invoice.pdf")
# end
