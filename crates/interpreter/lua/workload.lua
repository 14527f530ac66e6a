-- Workloads of OpenKruise that look like a Deployment.
local kube = require("kube")

local counts = {
  CloneSet = {
    "replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "updatedReadyReplicas",
    "expectedUpdatedReplicas",
  },
  StatefulSet = {
    "replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "updatedReadyReplicas", "currentReplicas",
  },
  UnitedDeployment = {
    "replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "updatedReadyReplicas", "unavailableReplicas",
  },
}
local names = {
  CloneSet = { "currentRevision", "updateRevision", "labelSelector" },
  StatefulSet = { "currentRevision", "updateRevision" },
  UnitedDeployment = {},
}

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
  local fields = {}
  for _, list in ipairs({ counts[object.kind], names[object.kind] }) do
    for _, field in ipairs(list) do table.insert(fields, field) end
  end
  if object.kind == "UnitedDeployment" then table.insert(fields, "conditions") end
  return reflect(object, fields)
end

-- Of each type the last condition that a member has.
local function conditions(items)
  local place, all = {}, {}
  for _, item in ipairs(items) do
    for _, one in ipairs((item.status or {}).conditions or {}) do
      place[one.type] = place[one.type] or #all + 1
      all[place[one.type]] = one
    end
  end
  return all
end

function AggregateStatus(object, items)
  local status = object.status or {}
  add_up(status, counts[object.kind], items)
  take_last(status, names[object.kind], items)
  if object.kind == "UnitedDeployment" then
    local all = conditions(items)
    if #all > 0 then status.conditions = all end
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
