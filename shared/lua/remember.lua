-- Has Redis know again which agents threads keep, for as long as after a thread's last turn.
for place, thread in ipairs(KEYS) do
  local turn_ttl, agent = ARGV[1], ARGV[place + 1]
  if redis.call("HSETNX", thread, "agent", agent) == 1 and not redis.call("HGET", thread, "live") then
    redis.call("EXPIRE", thread, turn_ttl)
  end
end
