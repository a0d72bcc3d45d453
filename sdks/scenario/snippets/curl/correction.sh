set -euo pipefail

# snippet part
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/invoices/$INVOICE_ID/credit-notes" \
  -H 'Idempotency-Key: correct-'"$INVOICE_ID" \
  -H 'Prefer: handling=strict' --json '{"amount": {"amount": 3000, "currency": "USD"}, "reason": "One kayak less"}' |
  jq -r '.status, .total_amount.amount'
# end

# snippet rest
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/invoices/$INVOICE_ID/credit-notes" \
  -H 'Prefer: handling=strict' --json '{"reason": "Wrong date"}' | jq -r .total_amount.amount
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/invoices/$INVOICE_ID" |
  jq -r '.status, .amount_credited.amount, .amount_due.amount'
# end
