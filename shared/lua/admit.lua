-- Accepts a turn: the idempotency key, the thread's agent and the limit are checked, then it gets
-- its record, its first chunk and the last place in the queue, all at once.
--
-- Answers {"admitted", the record as a flat list, turns before it}, {"repeated", turn id},
-- {"conflict"}, {"quarantined"}, {"agent_mismatch", agent} or {"full", waiting turns}.
local queue, running, turn, job, thread, idempotency, log, control, quarantined = unpack(KEYS)
local turn_id, limit, wanted_agent, default_agent, body_hash, job_value, first_chunk, thread_id =
  unpack(ARGV, 1, 8)

if body_hash ~= "" then
  local known = redis.call("GET", idempotency)
  if known then
    local known_id, known_hash = string.match(known, "^(%S+) (%S+)$")
    if known_hash == body_hash then return { "repeated", known_id } end
    return { "conflict" }
  end
end

if redis.call("SISMEMBER", quarantined, thread_id) == 1 then return { "quarantined" } end

local agent = redis.call("HGET", thread, "agent")
if agent and wanted_agent ~= "" and wanted_agent ~= agent then return { "agent_mismatch", agent } end
if not agent then agent = wanted_agent ~= "" and wanted_agent or default_agent end

local ahead = redis.call("ZCARD", queue)
local waiting = ahead
local current = redis.call("GET", running)
if current and redis.call("ZSCORE", queue, current) then waiting = waiting - 1 end
if waiting >= tonumber(limit) then return { "full", tostring(waiting) } end

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
-- A score says nothing but the order. It is `created_at - 1`, by which queueing.lua gives a turn its
-- place again, and a 1024th more for each of equal milliseconds, which a double holds exactly.
local score = now_ms - 1
local last = redis.call("ZREVRANGE", queue, 0, 0, "WITHSCORES")[2]
if last and tonumber(last) >= score then score = tonumber(last) + 1 / 1024 end

redis.call("HSET", turn, "turn_id", turn_id, "agent", agent, "status", "queued",
  "created_at", string.format("%d", now_ms), "seq", 1, "attempt", 0, "claim", 0,
  "thread_id", thread_id, "body_hash", body_hash, unpack(ARGV, 9))
redis.call("HSET", thread, "agent", agent)
redis.call("HINCRBY", thread, "live", 1)
redis.call("PERSIST", thread)

local chunk = cjson.decode(first_chunk)
chunk.metadata.position = ahead
redis.call("XADD", log, "1-0", "type", "queued", "body", cjson.encode(chunk))

redis.call("SET", job, job_value)
redis.call("ZADD", queue, string.format("%.10f", score), turn_id)
if body_hash ~= "" then redis.call("SET", idempotency, turn_id .. " " .. body_hash) end
redis.call("PUBLISH", control, "wake")
return { "admitted", redis.call("HGETALL", turn), ahead }
