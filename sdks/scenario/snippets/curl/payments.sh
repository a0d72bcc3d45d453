set -euo pipefail
booking=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings" \
  -H 'Prefer: handling=strict' --json '{"unit_id": "'"$UNIT_ID"'", "package_id": "'"$PACKAGE_ID"'",
    "event_date": "2027-07-03", "event_start_time": "09:00"}')

# snippet intent
intent=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/payment-intents" \
  -H 'Prefer: handling=strict' --json "$(jq '{booking_id: .id, amount_minor: .deposit_amount.amount}' <<<"$booking")")
jq -r .status <<<"$intent"
# end

# snippet confirm
curl -sS --fail-with-body "$STRIPE_URL/v1/payment_intents/$(jq -r .id <<<"$intent")/confirm" \
  -d key="$STRIPE_PUBLISHABLE_KEY" -d client_secret="$(jq -r .client_secret <<<"$intent")" \
  -d payment_method=pm_card_visa | jq -r .status
# end

# snippet wait
until [ "$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" \
  "$HOLDFAST_BASE_URL/payment-intents/$(jq -r .id <<<"$intent")" | jq -r .status)" = succeeded ]; do
  sleep 1
done
echo succeeded
# end

# snippet refund
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/refunds" \
  -H 'Prefer: handling=strict' --json "$(jq '{payment_intent_id: .id, amount_minor: 500, reason: "requested_by_customer"}' <<<"$intent")" |
  jq -r .amount
# end

# snippet cash
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/refunds" \
  -H 'Prefer: handling=strict' --json "$(jq '{booking_id: .id, amount_minor: 300, method: "cash", reference: "receipt-7",
    reason: "requested_by_customer"}' <<<"$booking")" | jq -r '.method, .reference'
# end
