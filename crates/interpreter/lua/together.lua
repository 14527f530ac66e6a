-- Stands behind the script of jobs and clusters with several pod templates: their states in several members as one.

local function statuses(items)
  local found = {}
  for _, item in ipairs(items) do
    if item.status ~= nil then table.insert(found, item.status) end
  end
  return found
end

-- The greatest that members say of these fields, or the least; moments are written so that the later is the greater.
local function extreme(status, fields, items, greater)
  for _, field in ipairs(fields) do
    local found
    for _, own in ipairs(statuses(items)) do
      local value = own[field]
      if value ~= nil and value ~= "" and (found == nil or (value > found) == greater) then found = value end
    end
    status[field] = found
  end
end

local function take_first(status, fields, items)
  for _, field in ipairs(fields) do
    status[field] = nil
    for _, own in ipairs(statuses(items)) do
      if status[field] == nil then status[field] = own[field] end
    end
  end
end

-- Maps of members as one; numbers under the same name add up, else the last is right.
local function join(into, from)
  for key, value in pairs(from or {}) do
    if type(value) == "table" then
      into[key] = type(into[key]) == "table" and join(into[key], value) or value
    elseif type(value) == "number" then
      into[key] = (tonumber(into[key]) or 0) + value
    else
      into[key] = value
    end
  end
  return into
end

local function joined(field, items)
  local all = {}
  for _, own in ipairs(statuses(items)) do join(all, own[field]) end
  return all
end

local function all_conditions(items)
  local all = {}
  for _, own in ipairs(statuses(items)) do
    for _, one in ipairs(own.conditions or {}) do table.insert(all, one) end
  end
  return all
end

-- The latest condition of each type or other key.
local function latest_conditions(items, key)
  local place, all = {}, {}
  local function moment(one) return one.lastUpdateTime or one.lastTransitionTime or "" end
  for _, one in ipairs(all_conditions(items)) do
    local name = one[key]
    if name ~= nil then
      place[name] = place[name] or #all + 1
      local former = all[place[name]]
      if former == nil or moment(one) > moment(former) then all[place[name]] = one end
    end
  end
  return all
end

-- The names of members with a state, and how many there are.
local function members_with(items, test)
  local found = {}
  for _, item in ipairs(items) do
    if item.status ~= nil and test(item.status) then table.insert(found, item.clusterName) end
  end
  return found, #found
end

local function roles_of(items)
  local sums = {}
  for _, own in ipairs(statuses(items)) do
    for role, counts in pairs(own.replicaStatuses or {}) do
      sums[role] = sums[role] or {}
      for _, field in ipairs({ "active", "failed", "succeeded" }) do
        local count = (sums[role][field] or 0) + (counts[field] or 0)
        if count ~= 0 then sums[role][field] = count end
      end
    end
  end
  return sums
end

local together = {}

-- Failed if it did anywhere, Succeeded when it did everywhere.
local function kubeflow(object, items, words)
  local status, conditions, times = object.status or {}, {}, {}
  extreme(status, { "startTime" }, items, false)
  extreme(status, { "lastReconcileTime" }, items, true)
  extreme(times, { "completionTime" }, items, true)
  local function add(kind, state, word, since, until_then)
    table.insert(conditions, { type = kind, status = state, reason = word[1], message = word[2], lastUpdateTime = since, lastTransitionTime = until_then })
  end
  local failed, failures = members_with(items, function(own) return holds(own, "Failed") end)
  local _, good = members_with(items, function(own) return holds(own, "Succeeded") and not holds(own, "Failed") end)
  local over = failures > 0 or good == #items
  if words.created ~= nil then
    local _, created = members_with(items, function(own) return holds(own, "Created") end)
    if created > 0 then add("Created", "True", words.created, status.startTime, status.startTime) end
    local running
    for _, one in ipairs(all_conditions(items)) do
      if one.type == "Running" then running = one end
    end
    if running ~= nil then
      add("Running", over and "False" or "True", words.running, running.lastUpdateTime, running.lastTransitionTime)
    end
  end
  local ended = words.created ~= nil and times.completionTime or nil
  if failures > 0 then
    local word = { words.failed[1], words.failed[2] .. table.concat(failed, ", ") }
    add("Failed", "True", word, ended, times.completionTime)
  elseif good == #items and good > 0 then
    add("Succeeded", "True", words.succeeded, ended, times.completionTime)
    status.completionTime = times.completionTime
  end
  status.replicaStatuses = roles_of(items)
  status.conditions = conditions
  object.status = status
end

function together.PyTorchJob(object, items)
  kubeflow(object, items, {
    created = { "PyTorchJobCreated", "PyTorchJob is created." },
    running = { "PyTorchJobRunning", "PyTorchJob is running." },
    failed = { "PyTorchJobFailed", "PyTorchJob executed failed in member clusters: " },
    succeeded = { "PyTorchJobSucceeded", "PyTorchJob is successfully completed." },
  })
end

function together.TFJob(object, items)
  kubeflow(object, items, {
    failed = { "TFJobFailed", "TFJob executed failed in member clusters: " },
    succeeded = { "Completed", "TFJob completed successfully" },
  })
end

function together.MPIJob(object, items)
  local status = { replicaStatuses = roles_of(items), conditions = latest_conditions(items, "type") }
  extreme(status, { "startTime" }, items, false)
  extreme(status, { "completionTime", "lastReconcileTime" }, items, true)
  object.status = status
end

local failed_phases = { Failed = true, Aborted = true, Aborting = true, Terminated = true, Terminating = true }

local function seconds(text)
  local sum, units = 0, { h = 3600, m = 60, s = 1 }
  for number, unit in string.gmatch(tostring(text or ""), "([%d.]+)([hms])") do
    sum = sum + (tonumber(number) or 0) * units[unit]
  end
  return sum
end

-- Jobs of Volcano.
function together.Job(object, items)
  local status, state = {}, {}
  add_up(status, { "minAvailable", "pending", "running", "succeeded", "failed", "terminating", "unknown", "retryCount" }, items)
  extreme(status, { "version" }, items, true)
  status.taskStatusCount = joined("taskStatusCount", items)
  status.controlledResources = joined("controlledResources", items)
  for _, own in ipairs(statuses(items)) do
    if seconds(own.runningDuration) > seconds(status.runningDuration) then status.runningDuration = own.runningDuration end
    if status.conditions == nil then
      for _, one in ipairs(own.conditions or {}) do
        if failed_phases[one.status] then status.conditions = own.conditions end
      end
    end
  end
  status.conditions = status.conditions or latest_conditions(items, "status")
  local function phase(own) return (own.state or {}).phase end
  local failed, failures = members_with(items, function(own) return phase(own) == "Failed" or phase(own) == "Aborted" end)
  local _, done = members_with(items, function(own) return phase(own) == "Completed" end)
  if failures > 0 then
    local message = "Job failed in clusters: " .. table.concat(failed, ",")
    state = { phase = "Failed", reason = "VolcanoJobFailed", message = message }
  elseif done == #items then
    state = { phase = "Completed", reason = "Completed", message = "Job completed successfully" }
  end
  local times = {}
  for _, own in ipairs(statuses(items)) do table.insert(times, { status = own.state }) end
  extreme(state, { "lastTransitionTime" }, times, true)
  status.state = state
  object.status = status
end

function together.RayCluster(object, items)
  local status = object.status or {}
  add_up(status, {
    "readyWorkerReplicas", "availableWorkerReplicas", "maxWorkerReplicas", "minWorkerReplicas", "desiredWorkerReplicas",
  }, items)
  for _, field in ipairs({ "desiredCPU", "desiredMemory", "desiredGPU", "desiredTPU" }) do
    local sum = "0"
    for _, own in ipairs(statuses(items)) do
      if own[field] ~= nil and own[field] ~= "" then sum = kube.resourceAdd(sum, own[field]) end
    end
    status[field] = sum
  end
  extreme(status, { "lastUpdateTime" }, items, true)
  take_first(status, { "endpoints", "head", "state", "stateTransitionTimes" }, items)
  status.conditions = all_conditions(items)
  object.status = status
end

-- The status of the member that is worst off, by the rank of a field.
local function worst(items, field, ranks)
  local found, rank
  for _, own in ipairs(statuses(items)) do
    local value = own[field]
    if type(value) == "table" then value = value.state end
    local own_rank = ranks[value] or 0
    if value ~= nil and (rank == nil or own_rank > rank) then found, rank = own, own_rank end
  end
  return found or {}
end

function together.RayJob(object, items)
  local status = object.status or {}
  local deployment = worst(items, "jobDeploymentStatus", {
    Initializing = 1, Waiting = 2, Suspending = 3, Suspended = 3, Retrying = 4, Running = 5, Complete = 6,
    ValidationFailed = 7, Failed = 8,
  })
  for _, field in ipairs({ "jobDeploymentStatus", "reason", "message" }) do status[field] = deployment[field] end
  local ranks = { PENDING = 1, RUNNING = 2, SUCCEEDED = 3, STOPPED = 4, FAILED = 5 }
  status.jobStatus = worst(items, "jobStatus", ranks).jobStatus
  object.status = status
end

function together.RayService(object, items)
  local status, apps = object.status or {}, {}
  local ranks = { NOT_STARTED = 1, DEPLOYING = 2, DELETING = 3, UNHEALTHY = 4, DEPLOY_FAILED = 5 }
  status.serviceStatus = "Running"
  for _, own in ipairs(statuses(items)) do
    if own.serviceStatus == "" then status.serviceStatus = "" end
    for name, app in pairs((own.activeServiceStatus or {}).applicationStatuses or {}) do
      if apps[name] == nil or (ranks[app.status] or 0) > (ranks[apps[name].status] or 0) then apps[name] = app end
    end
  end
  add_up(status, { "numServeEndpoints" }, items)
  extreme(status, { "lastUpdateTime", "observedGeneration" }, items, true)
  take_first(status, { "activeServiceStatus", "pendingServiceStatus" }, items)
  if status.activeServiceStatus ~= nil then status.activeServiceStatus.applicationStatuses = apps end
  status.conditions = all_conditions(items)
  object.status = status
end

function together.SparkApplication(object, items)
  local status = object.status or {}
  status.applicationState = worst(items, "applicationState", {
    SUBMITTED = 1, PENDING_RERUN = 1, COMPLETED = 2, SUSPENDING = 3, SUSPENDED = 3, RUNNING = 4, RESUMING = 4,
    SUCCEEDING = 4, INVALIDATING = 5, FAILING = 6, FAILED = 6, SUBMISSION_FAILED = 6,
  }).applicationState
  add_up(status, { "executionAttempts", "submissionAttempts" }, items)
  extreme(status, { "lastSubmissionAttemptTime", "terminationTime" }, items, true)
  status.executorState = joined("executorState", items)
  object.status = status
end

-- What one member says is right as it is, except where the conditions tell of all members.
function AggregateStatus(object, items)
  local one = #items == 1 and object.kind ~= "PyTorchJob" and object.kind ~= "TFJob"
  if one then object.status = items[1].status else together[object.kind](object, items) end
  return object
end
