-- Jobs and clusters with several pod templates: those of Kubeflow, Volcano, Ray and Spark. All parts run in one cluster.
local kube = require("kube")

-- Parts of a map from role to replicas and template, in the order of their names.
local function roles(map)
  local names, found = {}, {}
  for name in pairs(map or {}) do table.insert(names, name) end
  table.sort(names)
  for _, name in ipairs(names) do
    table.insert(found, { name = string.lower(name), replicas = map[name].replicas or 1, template = map[name].template })
  end
  return found
end

local function ray(spec)
  local found = {}
  if spec == nil then return found end
  if spec.headGroupSpec ~= nil then
    table.insert(found, { name = "ray-head", replicas = 1, template = spec.headGroupSpec.template })
  end
  for _, group in ipairs(spec.workerGroupSpecs or {}) do
    local hosts = group.numOfHosts or 1
    local replicas = (group.replicas or group.minReplicas or 1) * hosts
    table.insert(found, { name = group.groupName, replicas = replicas, template = group.template })
  end
  return found
end

-- Spark writes megabytes as 512m.
local function memory(amount)
  local number, unit = string.match(tostring(amount or ""), "^(%d+)(%a*)$")
  if number == nil then return amount end
  local units = { m = "Mi", mb = "Mi", g = "Gi", gb = "Gi", k = "Ki", kb = "Ki", t = "Ti", b = "" }
  return number .. (units[string.lower(unit)] or unit)
end

local function spark(name, part, replicas)
  local cores = part.coreRequest or part.cores
  if cores ~= nil then cores = tostring(cores) end
  local needs = { resourceRequest = { cpu = cores, memory = memory(part.memory) }, priorityClassName = part.priorityClassName }
  if part.nodeSelector ~= nil or part.tolerations ~= nil then
    needs.nodeClaim = { nodeSelector = part.nodeSelector, tolerations = part.tolerations }
  end
  return { name = name, replicas = replicas, needs = needs }
end

local function parts(object)
  local spec = object.spec or {}
  if object.kind == "PyTorchJob" then return roles(spec.pytorchReplicaSpecs) end
  if object.kind == "TFJob" then return roles(spec.tfReplicaSpecs) end
  if object.kind == "MPIJob" then return roles(spec.mpiReplicaSpecs) end
  if object.kind == "RayCluster" then return ray(spec) end
  if object.kind == "RayJob" then return ray(spec.rayClusterSpec) end
  if object.kind == "SparkApplication" then
    local executor = spec.executor or {}
    return { spark("driver", spec.driver or {}, 1), spark("executor", executor, executor.instances or 1) }
  end
  local found = {}
  for at, task in ipairs(spec.tasks or {}) do
    local name = task.name or ("task-" .. at)
    table.insert(found, { name = name, replicas = task.replicas or 1, template = task.template })
  end
  return found
end

function GetComponents(object)
  local found = {}
  for _, part in ipairs(parts(object)) do
    local needs = part.needs
    if part.template ~= nil then needs = kube.accuratePodRequirements(part.template) end
    table.insert(found, { name = part.name, replicas = part.replicas, replicaRequirements = needs })
  end
  return found
end

function GetDependencies(object)
  local found, known = {}, {}
  for _, part in ipairs(parts(object)) do
    if part.template ~= nil then
      for _, one in ipairs(kube.getPodDependencies(part.template, object.metadata.namespace)) do
        local key = one.kind .. "/" .. one.name
        if not known[key] then
          known[key] = true
          table.insert(found, one)
        end
      end
    end
  end
  return found
end

-- The last member that says something is right.
function AggregateStatus(object, items)
  for _, item in ipairs(items) do
    if item.status ~= nil then object.status = item.status end
  end
  return object
end

local bad = { Failed = true, Aborted = true, Terminated = true, FAILED = true, STOPPED = true, SUBMISSION_FAILED = true, FAILING = true }

-- What has not failed is well, as soon as something is known of it.
function InterpretHealth(object)
  local status = object.status
  if status == nil then return false end
  if object.kind == "RayCluster" then return status.state == "ready" end
  for _, one in ipairs(status.conditions or {}) do
    if one.type == "Failed" and one.status == "True" then return false end
  end
  local phase = status.jobDeploymentStatus
  if type(status.state) == "table" then phase = status.state.phase end
  if status.applicationState ~= nil then phase = status.applicationState.state end
  return not (bad[phase] or bad[status.jobStatus])
end
