-- Sees that a turn that has not ended has its place in the queue, and its job. One that is not known, or
-- that has ended, does not hold the slot any longer.
local turn, queue, running, job = unpack(KEYS)
local turn_id, job_value = unpack(ARGV)

local status = redis.call("HGET", turn, "status")
if status and not has_ended(status) then
  queue_again(turn, turn_id, queue, job, job_value)
elseif redis.call("GET", running) == turn_id then
  redis.call("DEL", running)
end
