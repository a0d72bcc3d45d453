set -euo pipefail

# snippet freeze
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/test-clock" \
  -H 'Prefer: handling=strict' --json '{"now": "2027-06-01T12:00:00Z"}' | jq -r .frozen
booking=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings" \
  -H 'Prefer: handling=strict' --json '{"unit_id": "'"$UNIT_ID"'", "event_date": "2027-07-03",
           "event_start_time": "09:00", "event_end_time": "11:00", "hold_minutes": 30}' | jq -r .id)
# end

# snippet advance
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/test-clock" \
  -H 'Prefer: handling=strict' --json '{"now": "2027-06-01T12:31:00Z"}' | jq -r .frozen
until [ "$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings/$booking" | jq -r .status)" = expired ]; do
  sleep 0.2
done
echo expired
# end

# snippet unfreeze
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" -X DELETE "$HOLDFAST_BASE_URL/test-clock"
# end
