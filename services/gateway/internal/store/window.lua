-- One round trip per request. All keys belong to one credential and share a hash tag.
-- KEYS: 1 window (hash s c p), 2 state written by identity, 3 memory marker, 4 finished answer
-- ARGV: 1 now in microseconds (0: Redis's own clock), 2 limit, 3 window in microseconds,
--       4 a fresh memory marker, 5 "1" to look for the finished answer
-- Answers {passed, start, cur, prev, now, state or false, marker, answer or false}.
-- The sums are those of domain.Limit; a test compares them.
local now = tonumber(ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local limit, per = tonumber(ARGV[2]), tonumber(ARGV[3])

local state = redis.call('GET', KEYS[2])
local marker = redis.call('GET', KEYS[3])
if not marker then
  marker = ARGV[4]
  redis.call('SET', KEYS[3], marker, 'EX', 86400)
end

local w = redis.call('HMGET', KEYS[1], 's', 'c', 'p')
local start, cur, prev = tonumber(w[1]), tonumber(w[2]) or 0, tonumber(w[3]) or 0
if not start or now >= start + 2 * per then
  start, cur, prev = now, 0, 0
elseif now >= start + per then
  start, cur, prev = start + per, 0, cur
end
if state == 'revoked' then
  return {0, start, cur, prev, now, state, marker, false}
end
local left = math.min(start + per - now, per)
if math.floor(prev * left / per) + cur >= limit then
  return {0, start, cur, prev, now, state, marker, false}
end
cur = cur + 1
redis.call('HSET', KEYS[1], 's', string.format('%.0f', start), 'c', cur, 'p', prev)
redis.call('PEXPIRE', KEYS[1], math.ceil((start + 2 * per - now) / 1000) + 1000)

local answer = false
if ARGV[5] == '1' then
  answer = redis.call('GET', KEYS[4])
end
return {1, start, cur, prev, now, state, marker, answer}
