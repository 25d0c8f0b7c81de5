-- The end of a turn, for every script that ends one: the terminal chunk, the terminal status, no
-- place in the queue, and a lifetime for all that is left of it.
local function ending_keys(names)
  return {
    turn = names[1], log = names[2], channel = names[3], queue = names[4], running = names[5],
    thread = names[6], idempotency = names[7], job = names[8],
  }
end

local function end_turn(keys, turn_id, seq, kind, body, chunk_ttl, turn_ttl, finished_at)
  redis.call("HSET", keys.turn, "status", kind, "seq", seq, "finished_at", finished_at)
  redis.call("XADD", keys.log, seq .. "-0", "type", kind, "body", body)
  redis.call("PUBLISH", keys.channel, seq .. " " .. kind .. " " .. body)

  redis.call("ZREM", keys.queue, turn_id)
  -- A worker that has picked the job up still reads it, and deletes it unless it dies before.
  redis.call("EXPIRE", keys.job, 60)
  if redis.call("GET", keys.running) == turn_id then redis.call("DEL", keys.running) end
  redis.call("EXPIRE", keys.log, chunk_ttl)
  redis.call("EXPIRE", keys.turn, turn_ttl)
  redis.call("EXPIRE", keys.idempotency, turn_ttl)
  if redis.call("HINCRBY", keys.thread, "live", -1) <= 0 then redis.call("EXPIRE", keys.thread, turn_ttl) end
end
