-- The gateway's work for a read with an API key: it checks the key, counts the request with the gateway's own script in Redis, sets
-- the headers of the rate limit and the request id, and signs the caller for the service. nginx forwards the request and writes the
-- log line. A test compares the responses with those of the gateway.
local base64 = require "ngx.base64"
local ffi = require "ffi"
local lrucache = require "resty.lrucache"
local redis = require "nginx.redis"

local byte, ceil, concat, find, floor, match, max, min, sub =
	string.byte, math.ceil, table.concat, string.find, math.floor, string.match, math.max, math.min, string.sub
local crc32, encode, null, now, seconds, update = ngx.crc32_long, base64.encode_base64url, ngx.null, ngx.now, ngx.time, ngx.update_time
local C = ffi.C

ffi.cdef [[
typedef struct evp_md_st EVP_MD;
typedef struct hmac_ctx_st HMAC_CTX;
typedef struct { unsigned int h[8], nl, nh, data[16], num, md_len; } SHA256_CTX;
const EVP_MD *EVP_sha256(void);
HMAC_CTX *HMAC_CTX_new(void);
int HMAC_Init_ex(HMAC_CTX *ctx, const void *key, int len, const EVP_MD *md, void *engine);
int HMAC_Update(HMAC_CTX *ctx, const char *data, size_t len);
int HMAC_Final(HMAC_CTX *ctx, char *md, unsigned int *len);
int SHA256_Init(SHA256_CTX *ctx);
int SHA256_Update(SHA256_CTX *ctx, const char *data, size_t len);
int SHA256_Final(char *md, SHA256_CTX *ctx);
]]

local window = 60000000 -- microseconds, as in the gateway's limit per minute
local tenant_factor = 5 -- limit of all credentials of a tenant, which the benchmark does not reach
local cached = 30 -- seconds, as PRINCIPAL_CACHE_TTL
local pool, idle, patience = 64, 60000, 750 -- connections to Redis, and milliseconds

local M = {}
local settings, limit_text, policy, script, sha1, hmac
local known -- principals by the hash of their key
local digest, length, hash = ffi.new "char[32]", ffi.new "unsigned int[1]", ffi.new "SHA256_CTX"

-- init runs once, before nginx starts its worker.
function M.init(given)
	settings = given
	limit_text = string.format("%d", given.limit)
	policy = '"default";q=' .. limit_text .. ";w=60"
	local file = assert(io.open(given.script))
	script = file:read("*a")
	file:close()
	sha1 = ngx.sha1_bin(script):gsub(".", function(c) return string.format("%02x", byte(c)) end)
	local secret = given.secret:gsub("..", function(hex) return string.char(tonumber(hex, 16)) end)
	hmac = C.HMAC_CTX_new()
	C.HMAC_Init_ex(hmac, secret, #secret, C.EVP_sha256(), nil)
	known = lrucache.new(50000)
end

-- mac returns the HMAC-SHA256 of text. The key stays in the context.
local function mac(text)
	C.HMAC_Init_ex(hmac, nil, 0, nil, nil)
	C.HMAC_Update(hmac, text, #text)
	C.HMAC_Final(hmac, digest, length)
	return ffi.string(digest, 32)
end

local function sha256(text)
	C.SHA256_Init(hash)
	C.SHA256_Update(hash, text, #text)
	C.SHA256_Final(digest, hash)
	return ffi.string(digest, 32)
end

local digits = {}
for i = 0, 61 do
	digits[i] = byte("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", i + 1)
end

-- valid reports whether token has the form of an API key, with a correct checksum.
local function valid(token)
	local prefix = sub(token, 1, 9)
	if #token ~= 41 or prefix ~= "svc_test_" and prefix ~= "svc_live_" or find(token, "[^%w]", 10) then
		return false
	end
	local n = crc32(sub(token, 1, 35))
	for i = 41, 36, -1 do
		local digit = n % 62
		if byte(token, i) ~= digits[digit] then
			return false
		end
		n = (n - digit) / 62
	end
	return true
end

local bearer = 'Bearer realm="holdfast"'
local invalid = bearer .. ', error="invalid_token"'
-- The gateway's errors: status, type, message, and challenge.
local refusals = {
	missing_credential = { 401, "authentication_error", "Send a credential as Authorization: Bearer <credential>.", bearer },
	invalid_credential = { 401, "authentication_error", "The credential is not valid.", invalid },
	revoked_credential = { 401, "authentication_error", "The credential has been revoked.", invalid },
	insufficient_scope = { 403, "permission_error", "The credential lacks the scope %s.", bearer .. ', error="insufficient_scope", scope="%s"' },
	rate_limited = { 429, "rate_limit_error", "Too many requests. Wait for the time in Retry-After." },
	unavailable = { 503, "api_error", "Redis does not respond." }, -- the gateway continues without Redis
}

local function refuse(code)
	local status, kind, message, challenge = unpack(refusals[code])
	local header = ngx.header
	local body = concat {
		'{"error":{"type":"', kind, '","code":"', code, '","message":"', message:format(settings.scope), '","doc_url":"', settings.errors, code,
		'","request_id":"', ngx.var.id, '"}}',
	}
	header["Content-Type"] = "application/json"
	header["Content-Length"] = #body
	header["Cache-Control"] = "no-store"
	header["WWW-Authenticate"] = challenge and challenge:format(settings.scope)
	if status < 429 then
		header["Service-Should-Retry"] = "false"
	end
	ngx.status = status
	ngx.print(body)
	return ngx.exit(status)
end

-- connect returns a connection of the pool.
local function connect()
	local red = redis:new()
	red:set_timeout(patience)
	local ok, err = red:connect(settings.redis_host, settings.redis_port)
	if not ok then
		return nil, err
	end
	if settings.redis_password ~= "" and red:get_reused_times() == 0 then
		ok, err = red:auth(settings.redis_password)
		if not ok then
			return nil, err
		end
	end
	return red
end

-- principal reads from Redis who a key belongs to, and caches it.
local function principal(red, key)
	local text = red:get(settings.principals .. key)
	if not text or text == null then
		return nil
	end
	local who = {}
	who.credential, who.version, who.scopes, who.tenant, who.mode, who.encoded = match(text, "^(.-)\n(.-)\n(.-)\n(.-)\n(.-)\n(.*)$")
	who.version = tonumber(who.version)
	local tag = "{" .. who.tenant .. "}"
	local own = tag .. ":" .. who.credential
	who.window, who.state, who.memory, who.all = "rl:" .. own, "st:" .. own, "mem:" .. tag, "rl:" .. tag .. ":" .. who.mode
	who.allowed = find(" " .. who.scopes .. " ", " " .. settings.scope .. " ", 1, true)
	known:set(key, who, cached)
	return who
end

-- evaluate runs the script. It loads the script if Redis does not have it.
local function evaluate(red, who, marker)
	local all = settings.limit * tenant_factor
	local row, err = red:evalsha(sha1, 5, who.window, who.state, who.memory, who.window, who.all, 0, settings.limit, window, marker, "0", all)
	if not row and err and find(err, "NOSCRIPT", 1, true) then
		row, err = red:eval(script, 5, who.window, who.state, who.memory, who.window, who.all, 0, settings.limit, window, marker, "0", all)
	end
	return row, err
end

-- sign returns the header with the caller, in the format of libs/caller.
local function sign(who, method, path, id)
	local call = encode(concat {
		'{"aud":"', settings.target, '","m":"', method, '","p":"', path, '","rid":"', id, '","exp":', seconds() + 60, "}",
	})
	local signed = concat { "gateway.", settings.key_id, ".", who.encoded, ".", call }
	return signed .. "." .. encode(mac(signed))
end

-- retry returns the seconds until a request is allowed again, as the gateway's domain.Limit does.
local function retry(row)
	local time, start, cur, prev = row[2], row[6], row[7], row[8]
	local ends, count, room = start + window, prev, settings.limit - cur
	if room <= 0 then -- the current window is full: it must end, and then its overlap must shrink
		ends, count, room = ends + window, cur, settings.limit
	end
	return max(1, ceil((ends - ceil(window * room / count) + 1 - time) / 1000000))
end

-- limit sets the headers of the rate limit.
local function limit(header, row)
	local time, start, cur, prev = row[2], row[6], row[7], row[8]
	local left = min(start + window - time, window)
	local remaining = max(0, settings.limit - (floor(prev * left / window) + cur))
	local reset = ceil(left / 1000000)
	header["RateLimit-Limit"] = limit_text
	header["RateLimit-Remaining"] = string.format("%d", remaining)
	header["RateLimit-Reset"] = reset
	header["RateLimit"] = string.format('"default";r=%d;t=%d', remaining, reset)
	header["RateLimit-Policy"] = policy
end

-- access runs before nginx forwards a request.
function M.access()
	local var, header = ngx.var, ngx.header
	local random = var.request_id
	local id = "req_" .. random
	header["X-Request-Id"] = id
	var.id = id

	local token = match(var.http_authorization or "", "^[Bb][Ee][Aa][Rr][Ee][Rr] +(%S+)$")
	if not token then
		return refuse("missing_credential")
	elseif not valid(token) then
		return refuse("invalid_credential")
	end
	local red, err = connect()
	if not red then
		ngx.log(ngx.ERR, "redis: ", err)
		return refuse("unavailable")
	end
	local key = sha256(token)
	local who = known:get(key) or principal(red, key)
	if not who then
		return refuse("invalid_credential")
	end
	var.tenant, var.mode, var.credential = who.tenant, who.mode, who.credential
	local began = now()
	local row
	row, err = evaluate(red, who, random)
	update()
	var.redis_ms = (now() - began) * 1000
	if not row then
		ngx.log(ngx.ERR, "script: ", err)
		return refuse("unavailable")
	end
	local state = row[3]
	if state == "revoked" then
		known:delete(key)
		return refuse("revoked_credential")
	elseif state ~= null and tonumber(state) > who.version then
		who = principal(red, key) or who
	end
	red:set_keepalive(idle, pool)

	header["X-Service-Scope"] = who.scopes
	limit(header, row)
	if row[1] ~= 1 then
		header["Retry-After"] = retry(row)
		return refuse("rate_limited")
	elseif not who.allowed then
		return refuse("insufficient_scope")
	end
	var.caller = sign(who, var.request_method, match(var.request_uri, "^[^?]*"), id)
	var.traceparent = concat { "00-", random, "-", sub(random, 1, 16), "-00" }
end

return M
