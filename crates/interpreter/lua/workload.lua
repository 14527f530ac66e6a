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
  add_up(status, counts, items)
  for _, item in ipairs(items) do
    local member = item.status or {}
    for _, field in ipairs(names) do status[field] = member[field] or status[field] end
  end
  if all_current(object, items) then status.observedGeneration = object.metadata.generation end
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
