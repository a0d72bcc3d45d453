set -eu
last=$(curl -sS --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/events?limit=1" | jq -r '.data[0].id')
curl -sS --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/customers" \
  -H 'Prefer: handling=strict' --json '{"first_name": "Ada", "email": "ada@example.com"}' >customer.json

# snippet stream
curl -sN --max-time 5 --oauth2-bearer "$HOLDFAST_API_KEY" -H "Last-Event-ID: $last" \
  "$HOLDFAST_BASE_URL/events/stream?type=customer.created" | sed -n 's/^data: *//p' | head -1 | jq -r .type
# end
