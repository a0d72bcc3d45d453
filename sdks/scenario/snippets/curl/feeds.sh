set -euo pipefail

# snippet create
feed=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/calendar-feeds" \
  -H 'Prefer: handling=strict' --json '{"name": "Kayak", "unit_id": "'"$UNIT_ID"'"}')
jq -r '.name, .url' <<<"$feed"
# end

# snippet delete
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" -X DELETE "$HOLDFAST_BASE_URL/calendar-feeds/$(jq -r .id <<<"$feed")"
# end
