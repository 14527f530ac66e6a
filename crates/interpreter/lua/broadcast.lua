-- Jobs of OpenKruise: one pod on every node, once (BroadcastJob) or by a time table (AdvancedCronJob).
local kube = require("kube")

local function pod(object)
  local template = object.spec.template or {}
  for _, name in ipairs({ "jobTemplate", "broadcastJobTemplate" }) do
    if template[name] ~= nil then return template[name].spec.template end
  end
  return template
end

-- A share of the nodes, such as 50%, is no number of replicas.
function GetReplicas(object)
  local parallel = object.spec.parallelism
  if type(parallel) ~= "number" then parallel = 1 end
  return parallel, kube.accuratePodRequirements(pod(object))
end

function ReviseReplica(object, replicas)
  if type(object.spec.parallelism) == "number" then object.spec.parallelism = replicas end
  return object
end

function GetDependencies(object)
  return kube.getPodDependencies(pod(object), object.metadata.namespace)
end

local counts = { "active", "succeeded", "failed", "desired" }

local function broadcast(status, items)
  add_up(status, counts, items)
  -- It has failed if it has anywhere, and is done when it is everywhere.
  local rank = { completed = 1, paused = 2, running = 3, failed = 4 }
  status.phase = nil
  for _, item in ipairs(items) do
    local phase = (item.status or {}).phase
    if phase ~= nil and (rank[phase] or 0) >= (rank[status.phase] or 0) then status.phase = phase end
  end
end

local function timed(status, items)
  local active = {}
  for _, item in ipairs(items) do
    local own = item.status or {}
    for _, one in ipairs(own.active or {}) do table.insert(active, one) end
    status.type = own.type or status.type
    -- Moments are written so that the later one is the greater text.
    local last = own.lastScheduleTime
    if last ~= nil and (status.lastScheduleTime == nil or last > status.lastScheduleTime) then
      status.lastScheduleTime = last
    end
  end
  status.active = active
end

function AggregateStatus(object, items)
  local status = object.status or {}
  if object.kind == "AdvancedCronJob" then timed(status, items) else broadcast(status, items) end
  object.status = status
  return object
end

function InterpretHealth(object)
  local status = object.status
  return status ~= nil and (status.failed or 0) == 0 and status.phase ~= "failed"
end
