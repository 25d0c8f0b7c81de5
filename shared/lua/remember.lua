-- Has Redis know again which agent a thread keeps, for as long as after the thread's last turn.
local thread = KEYS[1]
local agent, turn_ttl = unpack(ARGV)

if redis.call("HSETNX", thread, "agent", agent) == 1 and not redis.call("HGET", thread, "live") then
  redis.call("EXPIRE", thread, turn_ttl)
end
