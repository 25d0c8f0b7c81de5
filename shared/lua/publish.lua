-- One more chunk of a running turn: logged and told in one step, once, whoever sends it again.
--
-- Answers the number of the turn's last chunk, or -1 when another claim owns the turn or it ended;
-- then 1 if the turn is to be cancelled.
local turn, log, channel = unpack(KEYS)
local claim, seq, kind, body = unpack(ARGV)

local status, owner, last = unpack(redis.call("HMGET", turn, "status", "claim", "seq"))
if (status ~= "running" and status ~= "cancelling") or owner ~= claim then return { -1, 0 } end
local cancelling = status == "cancelling" and 1 or 0
if tonumber(seq) ~= tonumber(last) + 1 then return { tonumber(last), cancelling } end

redis.call("XADD", log, seq .. "-0", "type", kind, "body", body)
redis.call("HSET", turn, "seq", seq)
redis.call("PUBLISH", channel, seq .. " " .. kind .. " " .. body)
return { tonumber(seq), cancelling }
