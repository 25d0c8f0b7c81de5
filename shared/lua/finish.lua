-- The worker ends a turn that it has claimed, once.
--
-- Answers "ended", also when the same claim says the same again; or "fenced" when another claim
-- owns the turn or it had another end.
local keys = ending_keys(KEYS)
local turn_id, claim, kind, body, chunk_ttl, turn_ttl = unpack(ARGV, 1, 6)

local status, owner, last = unpack(redis.call("HMGET", keys.turn, "status", "claim", "seq"))
if owner == claim and status == kind then return "ended" end
if status ~= "running" or owner ~= claim then return "fenced" end

redis.call("HSET", keys.turn, unpack(ARGV, 7))
end_turn(keys, turn_id, tonumber(last) + 1, kind, body, chunk_ttl, turn_ttl)
return "ended"
