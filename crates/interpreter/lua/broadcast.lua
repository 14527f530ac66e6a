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
  if type(object.spec.parallelism) ~= "string" then object.spec.parallelism = replicas end
  return object
end

-- The labels of its pods tell which Job they are of.
function Retain(desired, observed)
  local labels = ((observed.spec.template or {}).metadata or {}).labels
  if labels ~= nil then
    desired.spec.template.metadata = desired.spec.template.metadata or {}
    desired.spec.template.metadata.labels = labels
  end
  return desired
end

function GetDependencies(object)
  return kube.getPodDependencies(pod(object), object.metadata.namespace)
end

local counts = { "active", "succeeded", "failed", "desired" }

function ReflectStatus(object)
  local from, status = object.status or {}, {}
  for _, list in ipairs({ counts, { "conditions", "startTime", "completionTime", "phase" } }) do
    for _, field in ipairs(list) do status[field] = from[field] end
  end
  return status
end

-- How a member's Job ended, if it did.
local function ended(status)
  for _, one in ipairs((status or {}).conditions or {}) do
    if one.status == "True" and (one.type == "Complete" or one.type == "Failed") then return one.type end
  end
  return nil
end

local function broadcast(status, items)
  add_up(status, counts, items)
  -- It has failed if it has anywhere, and is done when it is everywhere.
  local rank = { completed = 1, paused = 2, running = 3, failed = 4 }
  local failed, complete = {}, 0
  status.phase = nil
  for _, item in ipairs(items) do
    local phase = (item.status or {}).phase
    if phase ~= nil and (rank[phase] or 0) >= (rank[status.phase] or 0) then status.phase = phase end
    local how = ended(item.status)
    if how == "Failed" then table.insert(failed, item.clusterName) end
    if how == "Complete" then complete = complete + 1 end
  end
  status.conditions = {}
  if #failed > 0 then
    local message = "Job executed failed in member clusters: " .. table.concat(failed, ", ")
    table.insert(status.conditions, { type = "Failed", status = "True", reason = "JobFailed", message = message })
  end
  if complete == #items and complete > 0 then
    local done = { type = "Completed", status = "True", reason = "Completed", message = "Job completed" }
    table.insert(status.conditions, done)
  end
end

local function timed(status, items)
  local active = {}
  status.lastScheduleTime = nil
  for _, item in ipairs(items) do
    local own = item.status or {}
    for _, one in ipairs(own.active or {}) do table.insert(active, one) end
    -- Moments are written so that the later one is the greater text.
    local last = own.lastScheduleTime
    if last ~= nil and (status.lastScheduleTime == nil or last > status.lastScheduleTime) then
      status.lastScheduleTime = last
    end
  end
  take_last(status, { "type" }, items)
  status.active = active
end

function AggregateStatus(object, items)
  local status = object.status or {}
  if object.kind == "AdvancedCronJob" then timed(status, items) else broadcast(status, items) end
  object.status = status
  return object
end

-- Something must be wanted, and run or have run, and nothing must have failed.
function InterpretHealth(object)
  local status = object.status
  if status == nil or status.desired == 0 or status.failed ~= 0 then return false end
  return not (status.succeeded == 0 and status.active == 0)
end
