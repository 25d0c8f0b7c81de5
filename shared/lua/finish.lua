-- The worker ends a turn that it has claimed, once; a turn that is "cancelling" may have been done
-- before. A thread id as `quarantine` closes that thread to new turns. `finished_at` is the ledger's.
--
-- Answers "ended", also when the same claim says the same again; "fenced" when another claim owns the
-- turn or it had another end; "forgotten"; or "behind" when chunks are missing that come before
-- number `seq`; and the number of the turn's last chunk.
local keys = ending_keys(KEYS)
local turn_id, claim, seq, kind, body, chunk_ttl, turn_ttl, quarantine, finished_at = unpack(ARGV, 1, 9)

local status, owner, last = unpack(redis.call("HMGET", keys.turn, "status", "claim", "seq"))
if owner == claim and status == kind then return { "ended", tonumber(last) } end
local owned = ownership(keys.turn, claim)
if owned ~= "owned" then return { owned, 0 } end
if tonumber(seq) ~= tonumber(last) + 1 then return { "behind", tonumber(last) } end

if quarantine ~= "" then redis.call("SADD", KEYS[9], quarantine) end
redis.call("HSET", keys.turn, unpack(ARGV, 10))
end_turn(keys, turn_id, seq, kind, body, chunk_ttl, turn_ttl, finished_at)
return { "ended", tonumber(seq) }
