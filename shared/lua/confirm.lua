-- Notes that Redis has been told all, unless it has lost the mark that it was given before.
local known, mark = KEYS[1], ARGV[1]

if redis.call("GET", known) ~= mark then return 0 end
redis.call("SET", known, mark .. " told")
return 1
