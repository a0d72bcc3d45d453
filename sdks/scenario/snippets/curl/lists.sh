set -euo pipefail

# snippet iterate
cursor= numbers=0
while :; do
  page=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" \
    "$HOLDFAST_BASE_URL/customers?q=$RUN&limit=2${cursor:+&cursor=$cursor}")
  numbers=$((numbers + $(jq '.data | length' <<<"$page")))
  cursor=$(jq -r '.next_cursor // ""' <<<"$page")
  [ -n "$cursor" ] || break
done
echo "$numbers"
# end

# snippet sync
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" -G "$HOLDFAST_BASE_URL/customers" \
  -d sort=updated_at -d "updated_after=$SINCE" -d limit=100 | jq -r '.data[-1].updated_at > "2026"'
# end
