-- The worker lets go of a turn that is not over: it waits again, in its old place, with its claim's
-- work to go on from. One that is to be cancelled is not let go.
--
-- Answers "queued", "cancelling", "fenced", "forgotten", or "behind" when chunks are missing that come
-- before number `seq`; and the number of the turn's last chunk.
local turn, queue, running, log, channel = unpack(KEYS)
local turn_id, claim, seq, queued_chunk = unpack(ARGV)

local status, owner, last = unpack(redis.call("HMGET", turn, "status", "claim", "seq"))
if status == "queued" and owner == claim then return { "queued", tonumber(last) } end
local owned = ownership(turn, claim)
if owned ~= "owned" then return { owned, 0 } end
if tonumber(seq) ~= tonumber(last) + 1 then return { "behind", tonumber(last) } end
if status == "cancelling" then return { "cancelling", tonumber(last) } end

count_running_time(turn, time_ms())
redis.call("HSET", turn, "status", "queued", "seq", seq)
if redis.call("GET", running) == turn_id then redis.call("DEL", running) end
local chunk = cjson.decode(queued_chunk)
chunk.metadata.position = math.max(0, place_of(turn_id, queue, running))
local body = cjson.encode(chunk)
redis.call("XADD", log, seq .. "-0", "type", "queued", "body", body)
redis.call("PUBLISH", channel, seq .. " queued " .. body)
return { "queued", tonumber(seq) }
