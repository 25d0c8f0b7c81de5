-- Whether a status is a turn's last one.
local function has_ended(status)
  return status == "done" or status == "error" or status == "cancelled"
end
