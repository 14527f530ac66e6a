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
  local fields = { "daemonSetHash" }
  for _, field in ipairs(counts) do table.insert(fields, field) end
  return reflect(object, fields)
end

function AggregateStatus(object, items)
  local status = object.status or {}
  add_up(status, counts, items)
  take_last(status, { "daemonSetHash" }, items)
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
