-- Ends a turn that never started; one that has is left to its worker.
--
-- Answers the status that the turn now has: "cancelled" by this call or before, "running", "done",
-- "error", or "" when it is unknown; then 1 if this call ended it.
local keys = ending_keys(KEYS)
local turn_id, body, chunk_ttl, turn_ttl = unpack(ARGV)

local status, started_at, last = unpack(redis.call("HMGET", keys.turn, "status", "started_at", "seq"))
if not status then return { "", 0 } end
if status ~= "queued" then return { status, 0 } end
if started_at then return { "running", 0 } end

end_turn(keys, turn_id, tonumber(last) + 1, "cancelled", body, chunk_ttl, turn_ttl)
return { "cancelled", 1 }
