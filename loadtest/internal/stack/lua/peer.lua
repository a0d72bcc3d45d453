-- The work of the gateway for a read with an API key: it checks the key, counts the request with the gateway's own script in Redis,
-- sets the headers of the rate limit and the request id, and signs the caller for the service. nginx forwards the request and writes
-- the log line.
local base64 = require "ngx.base64"
local ffi = require "ffi"
local lrucache = require "resty.lrucache"
local redis = require "nginx.redis"

local byte, ceil, concat, find, floor, match, max, min, sub =
	string.byte, math.ceil, table.concat, string.find, math.floor, string.match, math.max, math.min, string.sub
local tonumber = tonumber
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
local cached = 30 -- seconds, as PRINCIPAL_CACHE_TTL
local pool, idle, patience = 64, 60000, 750 -- connections to Redis, and milliseconds

local M = {}
local settings, script, sha1, hmac
local digest, length, hash = ffi.new "char[32]", ffi.new "unsigned int[1]", ffi.new "SHA256_CTX"
local parsed -- principals by their text

-- init runs once, before nginx starts its worker.
function M.init(given)
	settings = given
	local file = assert(io.open(given.script))
	script = file:read("*a")
	file:close()
	sha1 = ngx.sha1_bin(script):gsub(".", function(c) return string.format("%02x", byte(c)) end)
	local secret = given.secret:gsub("..", function(hex) return string.char(tonumber(hex, 16)) end)
	hmac = C.HMAC_CTX_new()
	C.HMAC_Init_ex(hmac, secret, #secret, C.EVP_sha256(), nil)
	parsed = lrucache.new(1000)
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

local function refuse(status, code)
	ngx.status = status
	ngx.header["Content-Type"] = "application/json"
	ngx.print('{"error":{"code":"', code, '"}}')
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

-- principal returns who the key belongs to, from the shared dictionary, or from Redis if that has expired.
local function principal(red, key, reread)
	local text = not reread and ngx.shared.principals:get(key)
	if not text then
		local err
		text, err = red:get(settings.principals .. key)
		if not text or text == null then
			return nil, err
		end
		ngx.shared.principals:set(key, text, cached)
	end
	local found = parsed:get(text)
	if not found then
		found = {}
		found.credential, found.version, found.scopes, found.tenant, found.mode, found.encoded =
			match(text, "^(.-)\n(.-)\n(.-)\n(.-)\n(.-)\n(.*)$")
		found.version = tonumber(found.version)
		local tag = "{" .. found.credential .. "}"
		found.window, found.state, found.memory = "rl:" .. tag, "st:" .. tag, "mem:" .. tag
		found.granted = " " .. found.scopes .. " "
		parsed:set(text, found)
	end
	return found
end

-- evaluate runs the script. It loads the script if Redis does not have it.
local function evaluate(red, who, marker)
	local row, err = red:evalsha(sha1, 4, who.window, who.state, who.memory, who.window, 0, settings.limit, window, marker, "0")
	if not row and err and find(err, "NOSCRIPT", 1, true) then
		row, err = red:eval(script, 4, who.window, who.state, who.memory, who.window, 0, settings.limit, window, marker, "0")
	end
	return row, err
end

-- quoted returns a JSON string.
local function quoted(text)
	if find(text, '[%z\1-\31"\\]') then
		text = text:gsub('[%z\1-\31"\\]', function(c) return string.format("\\u%04x", byte(c)) end)
	end
	return '"' .. text .. '"'
end

-- sign returns the header with the caller, in the format of libs/caller.
local function sign(who, method, path, id)
	local call = encode(concat {
		'{"aud":"', settings.target, '","m":"', method, '","p":', quoted(path), ',"rid":"', id, '","exp":', seconds() + 60, "}",
	})
	local signed = concat { "gateway.", settings.key_id, ".", who.encoded, ".", call }
	return signed .. "." .. encode(mac(signed))
end

-- limit sets the headers of the rate limit, and returns the seconds until the window ends.
local function limit(header, row)
	local start, cur, prev, time = row[2], row[3], row[4], row[5]
	local left = min(start + window - time, window)
	local remaining = max(0, settings.limit - (floor(prev * left / window) + cur))
	local reset = ceil(left / 1000000)
	header["RateLimit-Limit"] = settings.limit_text
	header["RateLimit-Remaining"] = string.format("%d", remaining)
	header["RateLimit-Reset"] = reset
	header["RateLimit"] = string.format('"default";r=%d;t=%d', remaining, reset)
	header["RateLimit-Policy"] = settings.policy
	return reset
end

-- access runs before nginx forwards a request.
function M.access()
	local var, header = ngx.var, ngx.header
	local random = var.request_id
	local id = "req_" .. random
	header["X-Request-Id"] = id
	var.id = id

	local authorization = var.http_authorization or ""
	local token = match(authorization, "^[Bb][Ee][Aa][Rr][Ee][Rr] +(%S+)$")
	if not token or not valid(token) then
		return refuse(401, "invalid_credential")
	end
	local red, err = connect()
	if not red then
		ngx.log(ngx.ERR, "redis: ", err)
		return refuse(503, "unavailable")
	end
	local key = sha256(token)
	local who = principal(red, key)
	if not who then
		return refuse(401, "invalid_credential")
	end
	local began = now()
	local row
	row, err = evaluate(red, who, random)
	update()
	var.redis_ms = (now() - began) * 1000
	if not row then
		ngx.log(ngx.ERR, "script: ", err)
		return refuse(503, "unavailable")
	end
	local state = row[6]
	if state == "revoked" then
		ngx.shared.principals:delete(key)
		return refuse(401, "revoked_credential")
	end
	if state and state ~= null and (tonumber(state) or 0) > who.version then
		who = principal(red, key, true) or who
	end
	red:set_keepalive(idle, pool)

	header["X-Service-Scope"] = who.scopes
	local reset = limit(header, row)
	var.tenant, var.mode, var.credential = who.tenant, who.mode, who.credential
	if row[1] ~= 1 then
		header["Retry-After"] = reset
		return refuse(429, "rate_limited")
	end
	if not find(who.granted, settings.scope, 1, true) then
		return refuse(403, "insufficient_scope")
	end
	var.caller = sign(who, var.request_method, match(var.request_uri, "^[^?]*"), id)
	var.traceparent = concat { "00-", random, "-", sub(random, 1, 16), "-00" }
end

return M
