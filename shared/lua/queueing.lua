-- A turn that has started keeps its old place, before all that were accepted after it, and its job.
local function queue_again(turn, turn_id, queue, job, job_value)
  redis.call("ZADD", queue, "NX", redis.call("HGET", turn, "created_at") - 1, turn_id)
  redis.call("SET", job, job_value)
end
