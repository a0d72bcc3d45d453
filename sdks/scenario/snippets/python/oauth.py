# snippet authorize
import base64
import hashlib
import os
import secrets
from urllib.parse import urlencode

verifier = secrets.token_urlsafe(32)
state = secrets.token_urlsafe(16)
challenge = (
    base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
)
url = f"{os.environ['AUTH_URL']}/oauth/authorize?" + urlencode(
    {
        "response_type": "code",
        "client_id": os.environ["OAUTH_CLIENT_ID"],
        "redirect_uri": os.environ["OAUTH_REDIRECT_URI"],
        "scope": "read:bookings",
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
)
# end

import httpx  # noqa: E402

print(httpx.get(url).status_code)
