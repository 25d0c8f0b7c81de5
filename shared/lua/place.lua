-- A turn's place: turns before it, the running one included; 0 when it runs itself; -1 when it has
-- none.
local function place_of(turn_id, queue, running)
  local current = redis.call("GET", running)
  if current == turn_id then return 0 end
  local place = redis.call("ZRANK", queue, turn_id)
  if not place then return -1 end
  if current then
    local current_place = redis.call("ZRANK", queue, current)
    -- The running turn is before every other one, wherever its score has put it.
    if not current_place or current_place > place then place = place + 1 end
  end
  return place
end
