set -euo pipefail

# snippet authorize
verifier=$(openssl rand -hex 32) state=$(openssl rand -hex 16)
challenge=$(printf %s "$verifier" | openssl dgst -sha256 -binary | openssl base64 -A | tr '+/' '-_' | tr -d =)
url="$AUTH_URL/oauth/authorize?response_type=code&client_id=$OAUTH_CLIENT_ID&redirect_uri=$OAUTH_REDIRECT_URI"
url+="&scope=read:bookings&state=$state&code_challenge=$challenge&code_challenge_method=S256"
# end

curl -sS -o page.html -w '%{http_code}\n' "$url"
