-- Cancels a turn that has started: it is marked first and its worker told then, so that the mark
-- stands if the word is lost. One that waits for its start is left to `withdraw.lua`, one that has
-- ended is left as it is.
--
-- Answers the record that the turn now has as a flat list ({} when it is unknown), and its place.
local turn, queue, running, control = unpack(KEYS)
local turn_id = ARGV[1]

local status, started_at = unpack(redis.call("HMGET", turn, "status", "started_at"))
if status and started_at and not has_ended(status) then
  redis.call("HSET", turn, "status", "cancelling")
  redis.call("PUBLISH", control, "cancel " .. turn_id)
end
return { redis.call("HGETALL", turn), place_of(turn_id, queue, running) }
