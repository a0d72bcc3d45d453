set -euo pipefail

# snippet connect
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/tenant" | jq -r '.timezone, .currency'
# end

# snippet catalogue
service=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/services" \
  --json '{"name": "Kayak tour", "duration_minutes": 120}' | jq -r .id)
unit=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/units" \
  --json '{"name": "Kayak 1", "service_ids": ["'"$service"'"], "opening_hours": {"sat": [["09:00", "17:00"]]}}' | jq -r .id)
package=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/packages" \
  --json '{"name": "Two hours", "service_id": "'"$service"'", "base_price": {"amount": 8000, "currency": "USD"},
           "deposit_type": "percentage", "deposit_value": 2500}' | jq -r .id)
# end

# snippet availability
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" \
  "$HOLDFAST_BASE_URL/availability?from=2027-07-03&to=2027-07-03&unit_id=$unit" |
  jq -r '.data[].units[].slots[] | "\(.starts_at) \(.status)"'
# end

# snippet book
customer=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/customers" \
  --json '{"first_name": "Ada", "last_name": "Lovelace", "email": "ada@example.com"}' | jq -r .id)
booking=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings" \
  --json '{"customer_id": "'"$customer"'", "unit_id": "'"$unit"'", "package_id": "'"$package"'",
           "event_date": "2027-07-03", "event_start_time": "09:00"}')
jq -r '.status, .total_amount.amount, .deposit_amount.amount' <<<"$booking"
# end
