set -euo pipefail

# snippet quote
quote=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/quotes" \
  -H 'Prefer: handling=strict' --json '{"customer_id": "'"$CUSTOMER_ID"'", "unit_id": "'"$UNIT_ID"'", "package_id": "'"$PACKAGE_ID"'",
           "event_date": "2027-07-03", "event_start_time": "09:00"}' | jq -r .id)
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" -X POST "$HOLDFAST_BASE_URL/quotes/$quote/send" | jq -r .status
# end

# snippet accept
accepted=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" -X POST "$HOLDFAST_BASE_URL/quotes/$quote/accept")
jq -r .status <<<"$accepted"
invoice=$(jq -r '.invoice_ids[0]' <<<"$accepted")
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/invoices/$invoice" |
  jq -r '.kind, .status, .amount_due.amount'
# end

# snippet pay
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/invoices/$invoice/record-payment" \
  -H 'Prefer: handling=strict' --json '{"amount": {"amount": 2000, "currency": "USD"}, "method": "cash"}' | jq -r .status
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/invoices/$invoice/pdf" -o invoice.pdf
# end
