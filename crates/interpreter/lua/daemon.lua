-- DaemonSets of OpenKruise.
local kube = require("kube")

local counts = {
  "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
  "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
}

function GetDependencies(object)
  return kube.getPodDependencies(object.spec.template, object.metadata.namespace)
end

function ReflectStatus(object)
  local from, status = object.status or {}, {}
  for _, field in ipairs(counts) do status[field] = from[field] end
  local annotations = object.metadata.annotations or {}
  status.daemonSetHash = from.daemonSetHash
  status.generation = object.metadata.generation
  status.observedGeneration = from.observedGeneration
  status.resourceTemplateGeneration = tonumber(annotations["resourcetemplate.karmada.io/generation"])
  return status
end

function AggregateStatus(object, items)
  local status = object.status or {}
  add_up(status, counts, items)
  for _, item in ipairs(items) do
    status.daemonSetHash = (item.status or {}).daemonSetHash or status.daemonSetHash
  end
  if all_current(object, items) then status.observedGeneration = object.metadata.generation end
  object.status = status
  return object
end

function InterpretHealth(object)
  local status = object.status
  if status == nil or status.observedGeneration ~= object.metadata.generation then return false end
  local updated = status.updatedNumberScheduled or 0
  return updated >= (status.desiredNumberScheduled or 0) and (status.numberAvailable or 0) >= updated
end
