-- The worker ends a turn that it has claimed, once; a turn that is "cancelling" may have been done
-- before. A thread id as `quarantine` closes that thread to new turns.
--
-- Answers "ended", also when the same claim says the same again; or "fenced" when another claim
-- owns the turn or it had another end.
local keys = ending_keys(KEYS)
local turn_id, claim, kind, body, chunk_ttl, turn_ttl, quarantine = unpack(ARGV, 1, 7)

local status, owner, last = unpack(redis.call("HMGET", keys.turn, "status", "claim", "seq"))
if owner == claim and status == kind then return "ended" end
if (status ~= "running" and status ~= "cancelling") or owner ~= claim then return "fenced" end

if quarantine ~= "" then redis.call("SADD", KEYS[9], quarantine) end
redis.call("HSET", keys.turn, unpack(ARGV, 8))
end_turn(keys, turn_id, tonumber(last) + 1, kind, body, chunk_ttl, turn_ttl)
return "ended"
