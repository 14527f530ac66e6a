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
  local last = {}
  for _, item in ipairs(items) do last = item.status or last end
  for _, field in ipairs(fields) do status[field] = last[field] end
  object.status = status
  return object
end

-- States that a job stays in, or that end soon and well.
local settled = {
  RUNNING = true, FINISHED = true, FAILED = true, CANCELED = true, SUSPENDED = true,
  CANCELLING = true, FAILING = true, RESTARTING = true,
}
local starting = { CREATED = true, INITIALIZING = true, RECONCILING = true }
-- Errors of the user: they would be the same elsewhere.
local mistakes = { "ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff" }

-- A job that has not begun is unhealthy, unless another cluster could not do better.
function InterpretHealth(object)
  local status = object.status or {}
  local state = (status.jobStatus or {}).state
  if state == nil then return status.jobManagerDeploymentStatus == "READY" and status.lifecycleState == "STABLE" end
  if not starting[state] then return settled[state] == true end
  for _, mistake in ipairs(mistakes) do
    if string.find(status.error or "", mistake, 1, true) ~= nil then return true end
  end
  return false
end
