set -euo pipefail

# snippet register
endpoint=$(curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" "$HOLDFAST_BASE_URL/webhook-endpoints" \
  -H 'Prefer: handling=strict' --json '{"url": "https://app.example/hooks", "event_types": ["booking.created", "payment.succeeded"]}')
jq -r .status <<<"$endpoint"
secret=$(jq -r .secret <<<"$endpoint") # the only response with the secret
# end

[[ $secret = whsec_* ]]
curl -sS --fail-with-body --oauth2-bearer "$HOLDFAST_API_KEY" -X DELETE "$HOLDFAST_BASE_URL/webhook-endpoints/$(jq -r .id <<<"$endpoint")"
