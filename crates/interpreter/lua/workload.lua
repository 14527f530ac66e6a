-- Workloads of OpenKruise that look like a Deployment.
local kube = require("kube")

local counts = {
  "replicas", "readyReplicas", "updatedReplicas", "availableReplicas",
  "updatedReadyReplicas", "updatedAvailableReplicas", "expectedUpdatedReplicas", "currentReplicas",
}
local names = { "currentRevision", "updateRevision", "labelSelector" }

-- A UnitedDeployment has the template of a workload, and that has the one of its pods.
local function pod(object)
  local template = object.spec.template or {}
  for _, name in ipairs({
    "statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate", "deploymentTemplate",
  }) do
    if template[name] ~= nil then return template[name].spec.template end
  end
  return template
end

function GetReplicas(object)
  return object.spec.replicas or 1, kube.accuratePodRequirements(pod(object))
end

function ReviseReplica(object, replicas)
  object.spec.replicas = replicas
  return object
end

function GetDependencies(object)
  return kube.getPodDependencies(pod(object), object.metadata.namespace)
end

function ReflectStatus(object)
  local from, status = object.status or {}, {}
  for _, field in ipairs(counts) do status[field] = from[field] end
  for _, field in ipairs(names) do status[field] = from[field] end
  local annotations = object.metadata.annotations or {}
  status.generation = object.metadata.generation
  status.observedGeneration = from.observedGeneration
  status.resourceTemplateGeneration = tonumber(annotations["resourcetemplate.karmada.io/generation"])
  return status
end

function AggregateStatus(object, items)
  local status = object.status or {}
  for _, field in ipairs(counts) do
    local sum
    for _, item in ipairs(items) do
      if item.status ~= nil and item.status[field] ~= nil then sum = (sum or 0) + item.status[field] end
    end
    status[field] = sum
  end
  local current = true
  for _, item in ipairs(items) do
    local member = item.status or {}
    for _, field in ipairs(names) do status[field] = member[field] or status[field] end
    if member.resourceTemplateGeneration ~= object.metadata.generation
        or member.generation ~= member.observedGeneration then
      current = false
    end
  end
  if current then status.observedGeneration = object.metadata.generation end
  object.status = status
  return object
end

function InterpretHealth(object)
  local status = object.status
  if status == nil or status.observedGeneration ~= object.metadata.generation then return false end
  local updated = status.updatedReplicas or 0
  if object.spec.replicas ~= nil and updated < object.spec.replicas then return false end
  return (status.availableReplicas or status.updatedReadyReplicas or 0) >= updated
end
