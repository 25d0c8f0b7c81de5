-- Redis' clock, and how long a turn has been running by it.
local function time_ms()
  local time = redis.call("TIME")
  return string.format("%d", time[1] * 1000 + math.floor(time[2] / 1000))
end

-- Adds the time since the turn's claim; without `until_ms`, to when its worker was last heard of.
local function count_running_time(turn, until_ms)
  local claimed_at, told_at = unpack(redis.call("HMGET", turn, "claimed_at", "told_at"))
  local ran_ms = (tonumber(until_ms or told_at) or 0) - (tonumber(claimed_at) or 0)
  if claimed_at and ran_ms > 0 then
    redis.call("HINCRBY", turn, "ran_ms", string.format("%d", ran_ms))
  end
end
