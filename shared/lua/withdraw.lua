-- Ends a turn that has never started, and lists it for the worker's ledger.
--
-- Answers the record that the turn now has as a flat list; {} when it has started or ended meanwhile.
local keys = ending_keys(KEYS)
local control, unrecorded = KEYS[9], KEYS[10]
local turn_id, body, chunk_ttl, turn_ttl = unpack(ARGV)

local status, started_at, last = unpack(redis.call("HMGET", keys.turn, "status", "started_at", "seq"))
if status ~= "queued" or started_at then return {} end

redis.call("HSET", keys.turn, "rolled_back_messages", 0)
end_turn(keys, turn_id, tonumber(last) + 1, "cancelled", body, chunk_ttl, turn_ttl,
  time_ms())
local record, flat = {}, redis.call("HGETALL", keys.turn)
for place = 1, #flat, 2 do record[flat[place]] = flat[place + 1] end
redis.call("RPUSH", unrecorded, cjson.encode(record))
redis.call("PUBLISH", control, "unrecorded")
return flat
