-- One more chunk of a running turn: logged and told in one step, once, whoever sends it again.
--
-- Answers "owned", "fenced" or "forgotten", the number of the turn's last chunk, and 1 if the turn is
-- to be cancelled.
local turn, log, channel = unpack(KEYS)
local claim, seq, kind, body = unpack(ARGV)

local owned = ownership(turn, claim)
if owned ~= "owned" then return { owned, 0, 0 } end
local status, last = unpack(redis.call("HMGET", turn, "status", "seq"))
local cancelling = status == "cancelling" and 1 or 0
redis.call("HSET", turn, "told_at", time_ms())
if tonumber(seq) ~= tonumber(last) + 1 then return { owned, tonumber(last), cancelling } end

redis.call("XADD", log, seq .. "-0", "type", kind, "body", body)
redis.call("HSET", turn, "seq", seq)
redis.call("PUBLISH", channel, seq .. " " .. kind .. " " .. body)
return { owned, tonumber(seq), cancelling }
