set -euo pipefail

# snippet handle
book() {
  curl -sS --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings" \
    -H 'Prefer: handling=strict' --json '{"unit_id": "'"$UNIT_ID"'", "event_date": "2027-07-03",
      "event_start_time": "09:00", "event_end_time": "11:00"}'
}
book | jq -r .status
book | jq -r .error.code
# end

# snippet fields
curl -sS --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/customers" \
  -H 'Prefer: handling=strict' --json '{"first_name": "Ada", "email": "ada"}' |
  jq -r '.error.code, .error.param'
# end
