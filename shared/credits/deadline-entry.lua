-- The entry of a hold in the index of open holds. This text is put in front of admit.lua and settle.lua.
-- `holds` is the key of the organization's holds, {organization}:holds.
local function organizationOf(holds)
  return string.match(holds, '^{(.*)}')
end

local function indexEntry(holds, requestId, keyHash)
  return organizationOf(holds) .. '|' .. requestId .. '|' .. keyHash
end
