set -euo pipefail

# snippet invoice
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/invoices" \
  -H 'Prefer: handling=strict' --json '{"customer_id": "'"$CUSTOMER_ID"'", "line_items": [
           {"description": "Kayak tour", "quantity": 2, "unit_amount": {"amount": 8000, "currency": "USD"},
            "discount_bps": 1000, "taxes": [{"name": "Sales tax", "rate": "8.875"}]},
           {"description": "Deposit for equipment", "quantity": 1, "unit_amount": {"amount": 5000, "currency": "USD"}}]}' |
  jq -r '.subtotal_amount.amount, .discount_amount.amount, .tax_amount.amount, .total_amount.amount'
# end
