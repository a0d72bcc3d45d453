set -euo pipefail

# snippet book
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings" \
  -H 'Prefer: handling=strict' --json '{"event_date": "2027-07-03", "event_start_time": "09:00", "event_end_time": "11:00"}' |
  jq -r '.starts_at, .ends_at'
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings" \
  -H 'Prefer: handling=strict' --json '{"starts_at": "2027-07-03T09:00:00-04:00", "ends_at": "2027-07-03T11:00:00-04:00"}' |
  jq -r '.event_start_time, .event_end_time'
# end
