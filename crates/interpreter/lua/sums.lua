-- Stands before scripts of kinds whose members' states are added up.

-- Adds up each of these fields over the members; one that no member has is left out.
local function add_up(status, fields, items)
  for _, field in ipairs(fields) do
    local sum
    for _, item in ipairs(items) do
      local own = (item.status or {})[field]
      if own ~= nil then sum = (sum or 0) + own end
    end
    status[field] = sum
  end
end

-- Whether every member has seen the present generation of the template.
local function all_current(object, items)
  for _, item in ipairs(items) do
    local member = item.status or {}
    if member.resourceTemplateGeneration ~= object.metadata.generation
        or member.generation ~= member.observedGeneration then
      return false
    end
  end
  return true
end

