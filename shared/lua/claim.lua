-- The worker takes a turn. The claim number fences what an earlier claim may still try to write.
--
-- Answers the record as a flat list, or {} when the turn is not there to be run: ended or unknown.
-- One that is "cancelling" stays so: it is taken to be undone.
local turn, running = unpack(KEYS)
local turn_id, claimant, next_run_id = unpack(ARGV)

local status, started_at, owner, claim, runs, seq =
  unpack(redis.call("HMGET", turn, "status", "started_at", "claimant", "claim", "runs", "seq"))
if status ~= "queued" and status ~= "running" and status ~= "cancelling" then return {} end
-- The answer was lost, and whoever asked asks again.
if status ~= "queued" and owner == claimant and redis.call("GET", running) == turn_id then
  return redis.call("HGETALL", turn)
end

local now_ms = time_ms()
-- A turn that holds the slot already was left behind by a worker that died.
local was_left = status == "running" or (status == "cancelling" and redis.call("GET", running) == turn_id)
if was_left or not started_at then redis.call("HINCRBY", turn, "attempt", 1) end
if was_left then count_running_time(turn, nil) end
if not started_at then redis.call("HSET", turn, "started_at", now_ms) end
if status == "queued" then redis.call("HSET", turn, "status", "running") end

-- The first run has the turn's own id.
local run_id = tonumber(claim) == 0 and turn_id or next_run_id
runs = cjson.decode(runs or "[]")
table.insert(runs, { run_id = run_id, from_seq = tonumber(seq) + 1 })
redis.call("HSET", turn, "run_id", run_id, "runs", cjson.encode(runs), "claimant", claimant,
  "claimed_at", now_ms, "told_at", now_ms)
redis.call("HINCRBY", turn, "claim", 1)
redis.call("SET", running, turn_id)
return redis.call("HGETALL", turn)
