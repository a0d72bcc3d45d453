set -euo pipefail

# snippet rule
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/holiday-rules" \
  -H 'Prefer: handling=strict' --json '{"name": "Summer", "date_from": "2027-07-01", "date_to": "2027-08-31", "multiplier_bps": 12500,
           "applies_to": {"service_ids": ["'"$SERVICE_ID"'"]}}' | jq -r .multiplier_bps
# end

# snippet price
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings" \
  -H 'Prefer: handling=strict' --json '{"unit_id": "'"$UNIT_ID"'", "package_id": "'"$PACKAGE_ID"'",
    "event_date": "2027-07-03", "event_start_time": "09:00"}' |
  jq -r '.total_amount.amount, .deposit_amount.amount'
# end
