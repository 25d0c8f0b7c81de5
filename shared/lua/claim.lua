-- The worker takes a turn. The claim number fences what an earlier claim may still try to write.
--
-- Answers the record as a flat list, or {} when the turn is not there to be run: ended or unknown.
-- One that is "cancelling" stays so: it is taken to be undone.
local turn, running = unpack(KEYS)
local turn_id, claimant = unpack(ARGV)

local status, started_at, owner = unpack(redis.call("HMGET", turn, "status", "started_at", "claimant"))
if status ~= "queued" and status ~= "running" and status ~= "cancelling" then return {} end
-- The answer was lost, and whoever asked asks again.
if status ~= "queued" and owner == claimant and redis.call("GET", running) == turn_id then
  return redis.call("HGETALL", turn)
end

-- A turn that is running already was left behind by a worker that died.
if status == "running" or not started_at then redis.call("HINCRBY", turn, "attempt", 1) end
if not started_at then
  local time = redis.call("TIME")
  redis.call("HSET", turn, "started_at", string.format("%d", time[1] * 1000 + math.floor(time[2] / 1000)))
end
if status == "queued" then redis.call("HSET", turn, "status", "running") end
redis.call("HSET", turn, "run_id", turn_id, "claimant", claimant)
redis.call("HINCRBY", turn, "claim", 1)
redis.call("SET", running, turn_id)
return redis.call("HGETALL", turn)
