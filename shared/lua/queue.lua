-- The queue at one instant: the running turn's record ({} when none runs), then those that wait,
-- in order.
local queue, running = unpack(KEYS)
local turn_prefix = ARGV[1]

local current = redis.call("GET", running)
local answer = { current and redis.call("HGETALL", turn_prefix .. current) or {} }
for _, turn_id in ipairs(redis.call("ZRANGE", queue, 0, -1)) do
  local record = turn_id ~= current and redis.call("HGETALL", turn_prefix .. turn_id) or {}
  if #record > 0 then table.insert(answer, record) end
end
return answer
