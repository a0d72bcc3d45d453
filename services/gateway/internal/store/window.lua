-- One round trip per request. All keys belong to one tenant, or to one name without a tenant, and share a hash tag.
-- KEYS: 1 window of the credential (hash s c p), 2 state written by identity, 3 memory marker, 4 finished answer,
--       5 window of all credentials of the tenant and mode, if the request has a tenant,
--       6 window of the OAuth grants among them, if the credential is one
-- ARGV: 1 now in microseconds (0: Redis's own clock), 2 limit of the credential, 3 length of all windows in microseconds,
--       4 a fresh memory marker, 5 "1" to look for the finished answer, 6 limit of the tenant, 7 limit of its grants
-- Answers {passed, now, state or false, marker, answer or false, start, cur, prev, start, cur, prev, start, cur, prev}, with the windows
-- of the credential, of the tenant and of its grants. A request that one window refuses is counted in none.
-- The sums are those of domain.Limits; a test compares them.
local now = tonumber(ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local per = tonumber(ARGV[3])

local function read(key)
  local w = redis.call('HMGET', key, 's', 'c', 'p')
  local start, cur, prev = tonumber(w[1]), tonumber(w[2]) or 0, tonumber(w[3]) or 0
  if not start or now >= start + 2 * per then
    return {start = now, cur = 0, prev = 0}
  elseif now >= start + per then
    return {start = start + per, cur = 0, prev = cur}
  end
  return {start = start, cur = cur, prev = prev}
end

local function full(w, limit)
  local left = math.min(w.start + per - now, per)
  return math.floor(w.prev * left / per) + w.cur >= tonumber(limit)
end

local function count(key, w)
  w.cur = w.cur + 1
  redis.call('HSET', key, 's', string.format('%.0f', w.start), 'c', w.cur, 'p', w.prev)
  redis.call('PEXPIRE', key, math.ceil((w.start + 2 * per - now) / 1000) + 1000)
end

local state = redis.call('GET', KEYS[2])
local marker = redis.call('GET', KEYS[3])
if not marker then
  marker = ARGV[4]
  redis.call('SET', KEYS[3], marker, 'EX', 86400)
end

local none = {start = 0, cur = 0, prev = 0}
local own, all, apps = read(KEYS[1]), none, none
if KEYS[5] then
  all = read(KEYS[5])
end
if KEYS[6] then
  apps = read(KEYS[6])
end
local passed, answer = 0, false
if state ~= 'revoked' and not full(own, ARGV[2]) and not (KEYS[5] and full(all, ARGV[6]))
  and not (KEYS[6] and full(apps, ARGV[7])) then
  passed = 1
  count(KEYS[1], own)
  if KEYS[5] then
    count(KEYS[5], all)
  end
  if KEYS[6] then
    count(KEYS[6], apps)
  end
  if ARGV[5] == '1' then
    answer = redis.call('GET', KEYS[4])
  end
end
return {passed, now, state, marker, answer, own.start, own.cur, own.prev, all.start, all.cur, all.prev,
  apps.start, apps.cur, apps.prev}
