-- SidecarSets of OpenKruise: containers that are put into pods of others.
local kube = require("kube")

local counts = { "matchedPods", "updatedPods", "readyPods" }

-- It has no pods of its own.
function GetReplicas(object)
  return 0
end

function Retain(desired, observed)
  return desired
end

function ReflectStatus(object)
  local status = {}
  if object.status == nil then return status end
  for _, field in ipairs(counts) do status[field] = object.status[field] or 0 end
  return status
end

function AggregateStatus(object, items)
  object.status = {}
  add_up(object.status, counts, items)
  return object
end

-- It is well when all pods it is for have it.
function InterpretHealth(object)
  if object.status == nil then return false end
  return (object.status.updatedPods or 0) == (object.status.matchedPods or 0) or (object.status.matchedPods or 0) == 0
end

function GetDependencies(object)
  local spec = object.spec or {}
  local template = { spec = { containers = spec.containers, initContainers = spec.initContainers, volumes = spec.volumes } }
  return kube.getPodDependencies(template, object.metadata.namespace or "")
end
