import os

from holdfast import Client

client = Client()
invoice_id = os.environ["INVOICE_ID"]

# snippet part
note = client.invoices.create_credit_note(
    invoice_id, {"amount": {"amount": 3000, "currency": "USD"}, "reason": "One kayak less"}
)
print(note["status"])
print(note["total_amount"]["amount"])
# end

# snippet rest
rest = client.invoices.create_credit_note(invoice_id, {"reason": "Wrong date"})
print(rest["total_amount"]["amount"])
invoice = client.invoices.get(invoice_id)
print(invoice["status"])
print(invoice["amount_credited"]["amount"])
print(invoice["amount_due"]["amount"])
# end
