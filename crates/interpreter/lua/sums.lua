-- Stands before scripts of kinds whose members' states are put together.

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

-- The last that a member says of each of these fields; one that no member has is left out.
local function take_last(status, fields, items)
  for _, field in ipairs(fields) do
    local last
    for _, item in ipairs(items) do
      local own = (item.status or {})[field]
      if own ~= nil and own ~= "" then last = own end
    end
    status[field] = last
  end
end

-- Whether every member has seen the present generation of the template.
local function all_current(object, items)
  for _, item in ipairs(items) do
    local member = item.status or {}
    if (member.resourceTemplateGeneration or 0) ~= (object.metadata.generation or 0)
        or (member.generation or 0) ~= (member.observedGeneration or 0) then
      return false
    end
  end
  return true
end

-- Some fields of a status, and of which generations they are.
local function reflect(object, fields)
  local from, status = object.status, {}
  if from == nil then return status end
  for _, field in ipairs(fields) do status[field] = from[field] end
  local annotations = object.metadata.annotations or {}
  status.generation = object.metadata.generation
  status.observedGeneration = from.observedGeneration
  status.resourceTemplateGeneration = tonumber(annotations["resourcetemplate.karmada.io/generation"])
  return status
end

