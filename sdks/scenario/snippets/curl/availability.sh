set -euo pipefail

# snippet days
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" \
  "$HOLDFAST_BASE_URL/availability?from=2027-07-03&to=2027-07-04&service_id=$SERVICE_ID" |
  jq -r '.data[] | "\(.date) \(.status) \(.price_from.amount)"'
# end

# snippet explain
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" \
  "$HOLDFAST_BASE_URL/availability/explain?unit_id=$UNIT_ID&starts_at=2027-07-04T09:00:00-04:00" |
  jq -r '.available, .reason'
# end
