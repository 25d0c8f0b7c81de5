-- Cancels a turn: one that never started ends here, and is listed for the worker's ledger; one that
-- did is marked first and its worker told then, so that the mark stands if the word is lost.
--
-- Answers the status that the turn now has: "cancelling", "cancelled", "done", "error", or "" when it
-- is unknown; then 1 if this call ended it.
local keys = ending_keys(KEYS)
local control, unrecorded = KEYS[9], KEYS[10]
local turn_id, body, chunk_ttl, turn_ttl = unpack(ARGV)

local status, started_at, last = unpack(redis.call("HMGET", keys.turn, "status", "started_at", "seq"))
if not status then return { "", 0 } end
if status == "done" or status == "error" or status == "cancelled" then return { status, 0 } end

if started_at then
  redis.call("HSET", keys.turn, "status", "cancelling")
  redis.call("PUBLISH", control, "cancel " .. turn_id)
  return { "cancelling", 0 }
end

end_turn(keys, turn_id, tonumber(last) + 1, "cancelled", body, chunk_ttl, turn_ttl)
local record, flat = {}, redis.call("HGETALL", keys.turn)
for place = 1, #flat, 2 do record[flat[place]] = flat[place + 1] end
redis.call("RPUSH", unrecorded, cjson.encode(record))
redis.call("PUBLISH", control, "unrecorded")
return { "cancelled", 1 }
