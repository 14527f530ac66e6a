-- Kinds that say in a condition Ready how they are: those of Flux and of Kyverno.

local function condition(status, kind)
  for _, one in ipairs((status or {}).conditions or {}) do
    if one.type == kind then return one end
  end
  return nil
end

-- Older policies of Kyverno only have a field.
local function is_ready(status)
  if status == nil then return false end
  local ready = condition(status, "Ready")
  if ready == nil then return status.ready == true end
  return ready.status == "True"
end

function InterpretHealth(object)
  local status = object.status
  if not is_ready(status) then return false end
  local seen = status.observedGeneration
  return seen == nil or object.metadata.generation == nil or seen >= object.metadata.generation
end

-- Whoever suspends one in a member has a reason.
function Retain(desired, observed)
  if observed.spec ~= nil and observed.spec.suspend ~= nil then desired.spec.suspend = observed.spec.suspend end
  return desired
end

function ReflectStatus(object)
  local status = object.status or {}
  local annotations = object.metadata.annotations or {}
  status.generation = object.metadata.generation
  status.resourceTemplateGeneration = tonumber(annotations["resourcetemplate.karmada.io/generation"])
  return status
end

-- The template is as well as the first member that is not, and says which.
function AggregateStatus(object, items)
  local former = (object.status or {}).observedGeneration
  local chosen, current = nil, #items > 0
  for _, item in ipairs(items) do
    local status = item.status
    if status == nil or status.resourceTemplateGeneration ~= object.metadata.generation
        or (status.observedGeneration ~= nil and status.observedGeneration ~= status.generation) then
      current = false
    end
    if status ~= nil and (chosen == nil or (is_ready(chosen.status) and not is_ready(status))) then chosen = item end
  end
  if chosen == nil then return object end
  local status = chosen.status
  if not is_ready(status) then
    for _, one in ipairs(status.conditions or {}) do
      one.message = chosen.clusterName .. ": " .. (one.message or "")
    end
  end
  status.generation, status.resourceTemplateGeneration = nil, nil
  if status.observedGeneration ~= nil then
    status.observedGeneration = current and object.metadata.generation or former
  end
  object.status = status
  return object
end

-- Secrets, ConfigMaps and the account; sources are objects of their own with policies of their own.
function GetDependencies(object)
  local found, spec = {}, object.spec or {}
  local function add(kind, reference)
    local name = reference
    if type(reference) == "table" then name = reference.name end
    if type(name) == "string" and name ~= "" then
      table.insert(found, { apiVersion = "v1", kind = kind, namespace = object.metadata.namespace, name = name })
    end
  end
  for _, field in ipairs({ "secretRef", "certSecretRef", "proxySecretRef" }) do add("Secret", spec[field]) end
  for _, field in ipairs({ "verify", "decryption", "kubeConfig" }) do add("Secret", (spec[field] or {}).secretRef) end
  add("ServiceAccount", spec.serviceAccountName)
  local lists = { spec.valuesFrom or {}, (spec.postBuild or {}).substituteFrom or {} }
  for _, list in ipairs(lists) do
    for _, one in ipairs(list) do
      if one.kind == "Secret" or one.kind == "ConfigMap" then add(one.kind, one) end
    end
  end
  return found
end
