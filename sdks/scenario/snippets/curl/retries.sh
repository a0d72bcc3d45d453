set -euo pipefail
order=order-$RANDOM-$RANDOM

# snippet key
for attempt in 1 2; do
  curl -sS --fail-with-body --retry 3 --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/bookings" \
    -H "Idempotency-Key: $order" -H 'Prefer: handling=strict' --json '{"event_date": "2027-07-03"}' -D headers.txt -o booking.json
  grep -ci '^idempotent-replayed: true' headers.txt || true
done
# end

# snippet version
booking=$(jq -r .id booking.json) version=$(jq -r .version booking.json)
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" -X PATCH "$HOLDFAST_BASE_URL/bookings/$booking" \
  -H "If-Match: \"$version\"" -H 'Prefer: handling=strict' --json '{"guest_count": 2}' | jq -r .version
curl -sS --oauth2-bearer "$HOLDFAST_API_KEY" -X PATCH "$HOLDFAST_BASE_URL/bookings/$booking" \
  -H "If-Match: \"$version\"" -H 'Prefer: handling=strict' --json '{"guest_count": 3}' | jq -r .error.code
# end
