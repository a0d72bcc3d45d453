// snippet authorize
import { createHash, randomBytes } from "node:crypto";

const verifier = randomBytes(32).toString("base64url");
const state = randomBytes(16).toString("base64url");
const url = new URL("/oauth/authorize", process.env.AUTH_URL);
url.search = new URLSearchParams({
  response_type: "code",
  client_id: process.env.OAUTH_CLIENT_ID ?? "",
  redirect_uri: process.env.OAUTH_REDIRECT_URI ?? "",
  scope: "read:bookings",
  state,
  code_challenge: createHash("sha256").update(verifier).digest("base64url"),
  code_challenge_method: "S256",
}).toString();
// end

const response = await fetch(url, { redirect: "manual" });
console.log(response.status);
