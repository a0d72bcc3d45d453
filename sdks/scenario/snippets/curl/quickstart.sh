set -euo pipefail

# snippet connect
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/tenant" | jq -r '.timezone, .currency'
# end

# snippet catalogue
service=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/services" \
  -H 'Prefer: handling=strict' --json '{"name": "Kayak tour", "duration_minutes": 120}' | jq -r .id)
unit=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/units" \
  -H 'Prefer: handling=strict' --json '{"name": "Kayak 1", "service_ids": ["'"$service"'"],
    "opening_hours": {"sat": [["09:00", "17:00"]]}}' | jq -r .id)
package=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/packages" \
  -H 'Prefer: handling=strict' --json '{"name": "Two hours", "service_id": "'"$service"'", "base_price": {"amount": 8000, "currency": "USD"},
           "deposit_type": "percentage", "deposit_value": 2500}' | jq -r .id)
# end

# snippet availability
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" \
  "$HOLDFAST_BASE_URL/availability?from=2027-07-03&to=2027-07-03&unit_id=$unit" |
  jq -r '.data[].units[].slots[] | "\(.starts_at) \(.status)"'
# end

# snippet book
customer=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/customers" \
  -H 'Prefer: handling=strict' --json '{"first_name": "Ada", "last_name": "Lovelace", "email": "ada@example.com"}' | jq -r .id)
booking=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings" \
  -H 'Prefer: handling=strict' --json '{"customer_id": "'"$customer"'", "unit_id": "'"$unit"'", "package_id": "'"$package"'",
           "event_date": "2027-07-03", "event_start_time": "09:00"}')
jq -r '.status, .total_amount.amount, .deposit_amount.amount' <<<"$booking"
# end

# snippet intent
intent=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/payment-intents" \
  -H 'Prefer: handling=strict' --json "$(jq '{booking_id: .id, amount_minor: .deposit_amount.amount}' <<<"$booking")")
payment=$(jq -r .id <<<"$intent")
jq -r .status <<<"$intent"
# end

# snippet confirm
curl -sS --fail-with-body "$STRIPE_URL/v1/payment_intents/$payment/confirm" \
  -d key="$STRIPE_PUBLISHABLE_KEY" -d client_secret="$(jq -r .client_secret <<<"$intent")" \
  -d payment_method=pm_card_visa | jq -r .status
# end

# snippet event
for _ in $(seq 30); do
  event=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" \
    "$HOLDFAST_BASE_URL/events?type=payment.succeeded&object_id=$payment" | jq '.data[0]')
  [ "$event" = null ] || break
  sleep 1
done
jq -r '"\(.type) \(.data.object.amount)"' <<<"$event"
# end

# snippet paid
for _ in $(seq 30); do
  booking=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings/$(jq -r .id <<<"$booking")")
  [ "$(jq -r .payment_status <<<"$booking")" = unpaid ] || break
  sleep 1
done
jq -r .payment_status <<<"$booking"
# end
