-- Notes that a copy of a balance may come from entries which Postgres lost: it is newer than what Postgres had when it was
-- `version` with `mils`. This text is put in front of settle.lua and suspect-copy.lua. Of one copy the oldest sight is kept.
-- An entry of the list: organization|version of the copy -> id|balance of the copy|its entry ('' if unknown)|version|mils.
local suspectsMax = 100000

local function noteSuspect(suspects, balance, organization, id, version, mils)
  local copy = redis.call('HMGET', balance, 'version', 'balance', 'entry')
  local field = organization .. '|' .. copy[1]
  local noted = redis.call('HGET', suspects, field)
  if noted then
    local notedId, notedVersion = string.match(noted, '^([^|]*)|[^|]*|[^|]*|(%d+)|')
    if tonumber(notedVersion) <= tonumber(version) then return end
    id = notedId
  elseif redis.call('HLEN', suspects) >= suspectsMax then
    return
  end
  redis.call('HSET', suspects, field, table.concat({id, copy[2], copy[3] or '', version, mils}, '|'))
end
