-- Has Redis know again of a turn that has started: its record, its first chunk, its place in the
-- queue, its thread's agent. Nothing happens when it knows of this claim, or that the turn has ended.
--
-- `status`: "running" when its worker may still tell of it, else "queued"; `holds_slot`: "1" when it is
-- at it. What a person has wanted meanwhile stands: one that is "cancelling" stays so.
local turn, queue, running, log, channel, job, thread, idempotency = unpack(KEYS)
local turn_id, claim, status, holds_slot, agent, job_value, first_chunk, idempotency_value =
  unpack(ARGV, 1, 8)

local known, owner = unpack(redis.call("HMGET", turn, "status", "claim"))
if known and (has_ended(known) or tonumber(owner) >= tonumber(claim)) then return 0 end

redis.call("HSET", turn, unpack(ARGV, 9))
redis.call("HSET", turn, "status", known == "cancelling" and known or status)
if not known then
  redis.call("HSET", turn, "seq", 1)
  redis.call("DEL", log)
  redis.call("XADD", log, "1-0", "type", "queued", "body", first_chunk)
  redis.call("PUBLISH", channel, "1 queued " .. first_chunk)
  redis.call("HSET", thread, "agent", agent)
  redis.call("HINCRBY", thread, "live", 1)
  redis.call("PERSIST", thread)
  if idempotency_value ~= "" then redis.call("SET", idempotency, idempotency_value) end
end
queue_again(turn, turn_id, queue, job, job_value)
if holds_slot == "1" then redis.call("SET", running, turn_id) end
return 1
