set -euo pipefail

# snippet me
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/me" | jq -r '.type, .mode'
# end
