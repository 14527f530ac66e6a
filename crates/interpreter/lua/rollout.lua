-- Rollouts of Argo. Their observedGeneration is a text.
local kube = require("kube")

local counts = { "replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "HPAReplicas" }

-- A Rollout may lend its pod template from a Deployment; then it has none itself.
function GetReplicas(object)
  local replicas = object.spec.replicas or 1
  if object.spec.template == nil then return replicas end
  return replicas, kube.accuratePodRequirements(object.spec.template)
end

function ReviseReplica(object, replicas)
  object.spec.replicas = replicas
  return object
end

function GetDependencies(object)
  local found = {}
  if object.spec.template ~= nil then
    found = kube.getPodDependencies(object.spec.template, object.metadata.namespace)
  end
  local function add(apiVersion, kind, name)
    if name ~= nil and name ~= "" then
      table.insert(found, { apiVersion = apiVersion, kind = kind, namespace = object.metadata.namespace, name = name })
    end
  end
  local workload = object.spec.workloadRef
  if workload ~= nil then add(workload.apiVersion, workload.kind, workload.name) end
  local strategy = object.spec.strategy or {}
  local canary, blueGreen = strategy.canary or {}, strategy.blueGreen or {}
  add("v1", "Service", canary.stableService)
  add("v1", "Service", canary.canaryService)
  add("v1", "Service", blueGreen.activeService)
  add("v1", "Service", blueGreen.previewService)
  return found
end

function ReflectStatus(object)
  local from, status = object.status or {}, {}
  for _, field in ipairs(counts) do status[field] = from[field] end
  status.phase = from.phase
  status.message = from.message
  status.observedGeneration = from.observedGeneration
  return status
end

-- The worst phase of the members is that of the template.
local order = { "Degraded", "Paused", "Progressing", "Healthy" }

function AggregateStatus(object, items)
  local status = object.status or {}
  local phases = {}
  add_up(status, counts, items)
  for _, item in ipairs(items) do
    if item.status ~= nil and item.status.phase ~= nil then phases[item.status.phase] = true end
  end
  status.phase = nil
  for _, phase in ipairs(order) do
    if status.phase == nil and phases[phase] then status.phase = phase end
  end
  object.status = status
  return object
end

function InterpretHealth(object)
  local status = object.status
  if status == nil then return false end
  if tostring(status.observedGeneration) ~= tostring(object.metadata.generation) then return false end
  return status.phase == "Healthy" or status.phase == "Paused"
end
