-- A turn's record as a flat list, and its place.
local turn, queue, running = unpack(KEYS)
local turn_id = ARGV[1]

return { redis.call("HGETALL", turn), place_of(turn_id, queue, running) }
