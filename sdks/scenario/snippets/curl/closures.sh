set -euo pipefail

# snippet days
closure=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/closures" \
  -H 'Prefer: handling=strict' --json '{"name": "Winter break", "unit_ids": ["'"$UNIT_ID"'"],
    "date_from": "2027-12-24", "date_to": "2028-01-01"}')
closure_id=$(jq -r .id <<<"$closure")
jq -r '.starts_at, .ends_at' <<<"$closure"
# end

# snippet change
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" -X PATCH "$HOLDFAST_BASE_URL/closures/$closure_id" \
  -H 'Prefer: handling=strict' --json '{"date_to": "2028-01-03"}' | jq -r .ends_at
# end
