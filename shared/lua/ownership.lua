-- Whether a claim may still write, for every script by which a worker tells of its turn.
--
-- Answers "owned"; "fenced" when another claim owns the turn, it waits, or it has ended; or
-- "forgotten" when Redis knows of no such claim: it has come back without what it knew.
local function ownership(turn, claim)
  local status, owner = unpack(redis.call("HMGET", turn, "status", "claim"))
  if not status then return "forgotten" end
  if has_ended(status) then return "fenced" end
  if tonumber(owner) < tonumber(claim) then return "forgotten" end
  if owner ~= claim or status == "queued" then return "fenced" end
  return "owned"
end
