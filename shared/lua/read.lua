-- A turn's record as a flat list, and its place: turns before it, the running one included; 0 when
-- it runs itself; -1 when it has no place.
local turn, queue, running = unpack(KEYS)
local turn_id = ARGV[1]

local record = redis.call("HGETALL", turn)
local current = redis.call("GET", running)
if current == turn_id then return { record, 0 } end
local place = redis.call("ZRANK", queue, turn_id)
if not place then return { record, -1 } end
if current then
  local current_place = redis.call("ZRANK", queue, current)
  -- The running turn is before every other one, wherever its score has put it.
  if not current_place or current_place > place then place = place + 1 end
end
return { record, place }
