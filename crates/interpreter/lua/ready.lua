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
  if status.ready ~= nil then return status.ready end
  local ready = condition(status, "Ready")
  return ready ~= nil and ready.status == "True"
end

-- Kyverno does not say which generation it has seen.
local function is_policy(object)
  return string.find(object.apiVersion, "kyverno", 1, true) ~= nil
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
  local status = object.status
  if status == nil then return {} end
  if is_policy(object) then return status end
  local annotations = object.metadata.annotations or {}
  status.generation = object.metadata.generation
  status.resourceTemplateGeneration = tonumber(annotations["resourcetemplate.karmada.io/generation"])
  return status
end

-- Conditions that say the same in several members are one, with what each of them adds.
local function conditions(items)
  local all, place = {}, {}
  for _, item in ipairs(items) do
    for _, one in ipairs((item.status or {}).conditions or {}) do
      local key = table.concat({ one.type or "", one.status or "", one.reason or "" }, "/")
      local message = item.clusterName .. "=" .. (one.message or "")
      if place[key] ~= nil then
        all[place[key]].message = all[place[key]].message .. ", " .. message
      else
        one.message = message
        table.insert(all, one)
        place[key] = #all
      end
    end
  end
  return all
end

-- Fields that are put together in their own way, or are only for members.
local own = { conditions = true, observedGeneration = true, generation = true, resourceTemplateGeneration = true, rulecount = true }

local function rules(items)
  local sum
  for _, item in ipairs(items) do
    for name, count in pairs((item.status or {}).rulecount or {}) do
      sum = sum or {}
      sum[name] = (sum[name] or 0) + count
    end
  end
  return sum
end

-- What the last member says, with the conditions of all.
function AggregateStatus(object, items)
  local former, status, fields, known = object.status or {}, {}, {}, {}
  for _, item in ipairs(items) do
    for field in pairs(item.status or {}) do
      if not own[field] and not known[field] then
        known[field] = true
        table.insert(fields, field)
      end
    end
  end
  take_last(status, fields, items)
  status.rulecount = rules(items)
  status.conditions = conditions(items)
  status.observedGeneration = former.observedGeneration
  if not is_policy(object) and all_current(object, items) then
    status.observedGeneration = object.metadata.generation
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
  add("Secret", (((spec.chart or {}).spec or {}).verify or {}).secretRef)
  add("ServiceAccount", spec.serviceAccountName)
  local lists = { spec.valuesFrom or {}, (spec.postBuild or {}).substituteFrom or {} }
  for _, list in ipairs(lists) do
    for _, one in ipairs(list) do
      if one.kind == "Secret" or one.kind == "ConfigMap" then add(one.kind, one) end
    end
  end
  return found
end
