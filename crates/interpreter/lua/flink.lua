-- FlinkDeployments: one job manager, some task managers.
local kube = require("kube")

local function managers(object)
  local spec = object.spec
  local job = spec.jobManager or {}
  local task = spec.taskManager or {}
  local tasks = task.replicas
  if tasks == nil then
    local slots = tonumber((spec.flinkConfiguration or {})["taskmanager.numberOfTaskSlots"])
    local parallelism = tonumber((spec.job or {}).parallelism)
    tasks = 1
    if slots ~= nil and slots > 0 and parallelism ~= nil then tasks = math.ceil(parallelism / slots) end
  end
  return job, job.replicas or 1, task, tasks
end

-- What pods of both managers have in common.
local function common(object)
  local pod = (object.spec.podTemplate or {}).spec or {}
  local needs = { priorityClassName = pod.priorityClassName }
  if pod.nodeSelector ~= nil or pod.tolerations ~= nil then
    needs.nodeClaim = { nodeSelector = pod.nodeSelector, tolerations = pod.tolerations }
  end
  return needs
end

-- Flink writes megabytes as 2048m, which elsewhere is a bit more than two bytes.
local function memory(amount)
  if amount == nil then return nil end
  local number, unit = string.match(tostring(amount), "^%s*(%d+)%s*(%a*)%s*$")
  if number == nil then return amount end
  local units = { m = "Mi", mb = "Mi", g = "Gi", gb = "Gi", k = "Ki", kb = "Ki", b = "" }
  return number .. (units[string.lower(unit)] or unit)
end

local function request(manager)
  local resource = manager.resource or {}
  return { cpu = resource.cpu, memory = memory(resource.memory) }
end

function GetComponents(object)
  local job, jobs, task, tasks = managers(object)
  local jobNeeds, taskNeeds = common(object), common(object)
  jobNeeds.resourceRequest = request(job)
  taskNeeds.resourceRequest = request(task)
  return {
    { name = "jobmanager", replicas = jobs, replicaRequirements = jobNeeds },
    { name = "taskmanager", replicas = tasks, replicaRequirements = taskNeeds },
  }
end

-- Where only one kind of replica counts, each is taken for the larger of the two.
function GetReplicas(object)
  local job, jobs, task, tasks = managers(object)
  local needs = common(object)
  local a, b = request(job), request(task)
  needs.namespace = object.metadata.namespace
  needs.resourceRequest = {}
  for _, name in ipairs({ "cpu", "memory" }) do
    local one, other = a[name], b[name]
    local function amount(value)
      if value == nil then return 0 end
      return kube.getResourceQuantity(tostring(value))
    end
    if amount(one) >= amount(other) then
      needs.resourceRequest[name] = one
    else
      needs.resourceRequest[name] = other
    end
  end
  return jobs + tasks, needs
end

local fields = {
  "clusterInfo", "error", "jobManagerDeploymentStatus", "jobStatus", "lifecycleState",
  "observedGeneration", "reconciliationStatus", "taskManager",
}

function ReflectStatus(object)
  local from, status = object.status or {}, {}
  for _, field in ipairs(fields) do status[field] = from[field] end
  return status
end

-- A job runs in one cluster; the last that says something is right.
function AggregateStatus(object, items)
  local status = object.status or {}
  for _, item in ipairs(items) do
    if item.status ~= nil then
      for _, field in ipairs(fields) do status[field] = item.status[field] end
    end
  end
  object.status = status
  return object
end

-- A job that has not begun is unhealthy, unless it is known why.
function InterpretHealth(object)
  local status = object.status
  if status == nil then return false end
  local state = (status.jobStatus or {}).state
  if state == nil then return status.error ~= nil end
  if state == "CREATED" or state == "INITIALIZING" or state == "RECONCILING" then
    return status.error ~= nil or status.jobManagerDeploymentStatus == "ERROR"
  end
  return true
end
