-- Sees that a turn that has not ended has its place in the queue, and its job. One that is not known, or
-- that has ended, does not hold the slot any longer.
local turn, queue, running, job = unpack(KEYS)
local turn_id, job_value = unpack(ARGV)

local status, created_at = unpack(redis.call("HMGET", turn, "status", "created_at"))
if status == "queued" or status == "running" or status == "cancelling" then
  redis.call("ZADD", queue, "NX", created_at - 1, turn_id)
  redis.call("SET", job, job_value)
elseif redis.call("GET", running) == turn_id then
  redis.call("DEL", running)
end
