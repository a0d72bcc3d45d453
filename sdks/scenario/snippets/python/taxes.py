import os

from holdfast import Client

client = Client()
customer_id = os.environ["CUSTOMER_ID"]

# snippet invoice
invoice = client.invoices.create(
    {
        "customer_id": customer_id,
        "line_items": [
            {
                "description": "Kayak tour",
                "quantity": 2,
                "unit_amount": {"amount": 8000, "currency": "USD"},
                "discount_bps": 1000,
                "taxes": [{"name": "Sales tax", "rate": "8.875"}],
            },
            {
                "description": "Deposit for equipment",
                "quantity": 1,
                "unit_amount": {"amount": 5000, "currency": "USD"},
            },
        ],
    }
)
print(invoice["subtotal_amount"]["amount"])
print(invoice["discount_amount"]["amount"])
print(invoice["tax_amount"]["amount"])
print(invoice["total_amount"]["amount"])
# end
