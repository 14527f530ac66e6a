-- Jobs and clusters with several pod templates: those of Kubeflow, Volcano, Ray and Spark.
local kube = require("kube")

-- Parts of a map from role to replicas and template, in this order or else in that of their names.
local function roles(map, order)
  local found = {}
  for _, name in ipairs(order) do
    local one = (map or {})[name]
    if one ~= nil then
      table.insert(found, { name = string.lower(name), replicas = tonumber(one.replicas) or 1, template = one.template })
    end
  end
  return found
end

-- Without a number there are no workers, but one of anything else.
local function mpi(map)
  local names, found = {}, {}
  for name, one in pairs(map or {}) do
    if one.template ~= nil then table.insert(names, name) end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local few = string.lower(name) == "worker" and 0 or 1
    local replicas = tonumber(map[name].replicas) or few
    table.insert(found, { name = name, replicas = replicas, template = map[name].template })
  end
  return found
end

local function ray(spec)
  local found = {}
  if spec == nil then return found end
  if (spec.headGroupSpec or {}).template ~= nil then
    table.insert(found, { name = "ray-head", replicas = 1, template = spec.headGroupSpec.template })
  end
  for at, group in ipairs(spec.workerGroupSpecs or {}) do
    local name = group.groupName
    if name == nil or name == "" then name = "worker-" .. at end
    local hosts = group.numOfHosts or 1
    table.insert(found, { name = name, replicas = group.replicas or 0, hosts = hosts, template = group.template })
  end
  return found
end

-- Mebibytes, as which Spark takes what has no unit; Java writes them as 512m. Nil for what cannot be read.
local function memory(amount)
  local number, unit = string.match(string.lower(tostring(amount)), "^(%d+%.?%d*)(%a?)b?$")
  local units = { b = 1 / 1024 ^ 2, k = 1 / 1024, [""] = 1, m = 1, g = 1024, t = 1024 ^ 2, p = 1024 ^ 3 }
  if number == nil or units[unit] == nil then return nil end
  return tonumber(number) * units[unit]
end

-- Spark takes a share more than it is told, and at least 384 MiB more. Nil where an amount cannot be read:
-- Spark says so itself, and better than one that is not even sent to a member.
local function spark_memory(part, share)
  local own, more = memory(part.memory or "1g"), nil
  if own == nil then return nil end
  if part.memoryOverhead == nil then more = math.max(own * share, 384) else more = memory(part.memoryOverhead) end
  return more ~= nil and string.format("%fMi", own + more) or nil
end

local function spark(name, part, replicas, share)
  local cpu = part.coreRequest or part.cores or 1
  local needs = { resourceRequest = { cpu = cpu, memory = spark_memory(part, share) } }
  local gpu = part.gpu or {}
  if gpu.name ~= nil and gpu.name ~= "" and (tonumber(gpu.quantity) or 0) > 0 then
    needs.resourceRequest[gpu.name] = gpu.quantity
  end
  needs.priorityClassName = part.priorityClassName
  local affinity = ((part.affinity or {}).nodeAffinity or {}).requiredDuringSchedulingIgnoredDuringExecution
  if part.nodeSelector ~= nil or part.tolerations ~= nil or affinity ~= nil then
    needs.nodeClaim = { nodeSelector = part.nodeSelector, tolerations = part.tolerations, hardNodeAffinity = affinity }
  end
  return { name = name, replicas = replicas, needs = needs }
end

local function spark_parts(spec)
  local language = string.lower(spec.type or "")
  local share = tonumber(spec.memoryOverheadFactor)
  if share == nil then share = (language == "java" or language == "scala") and 0.1 or 0.4 end
  local executor = spec.executor or {}
  local replicas = tonumber(executor.instances) or 1
  local dynamic = spec.dynamicAllocation or {}
  if dynamic.enabled then
    replicas = math.max(replicas, tonumber(dynamic.initialExecutors) or 1, tonumber(dynamic.minExecutors) or 1)
  end
  return { spark("driver", spec.driver or {}, 1, share), spark("executor", executor, replicas, share) }
end

-- As many of each task must run together.
local function volcano(tasks)
  local found = {}
  for at, task in ipairs(tasks or {}) do
    local name = task.name
    if name == nil or name == "" then name = "task-" .. (at - 1) end
    table.insert(found, { name = name, replicas = tonumber(task.minAvailable) or 1, template = task.template })
  end
  return found
end

local function parts(object)
  local spec = object.spec or {}
  if object.kind == "PyTorchJob" then return roles(spec.pytorchReplicaSpecs, { "Master", "Worker" }) end
  if object.kind == "TFJob" then
    return roles(spec.tfReplicaSpecs, { "PS", "Worker", "Chief", "Master", "Evaluator" })
  end
  if object.kind == "MPIJob" then return mpi(spec.mpiReplicaSpecs) end
  if object.kind == "RayCluster" then return ray(spec) end
  if object.kind == "RayJob" then return ray(spec.rayClusterSpec) end
  if object.kind == "RayService" then return ray(spec.rayClusterConfig) end
  if object.kind == "SparkApplication" then return spark_parts(spec) end
  return volcano(spec.tasks)
end

function GetComponents(object)
  local found = {}
  for _, part in ipairs(parts(object)) do
    local needs = part.needs
    if part.template ~= nil then needs = kube.accuratePodRequirements(part.template) end
    local pods = part.replicas * (part.hosts or 1)
    table.insert(found, { name = part.name, replicas = pods, replicaRequirements = needs })
  end
  return found
end

function GetDependencies(object)
  local found, known = {}, {}
  local all = parts(object)
  local submitter = (object.spec or {}).submitterPodTemplate
  if submitter ~= nil then table.insert(all, { template = submitter }) end
  for _, part in ipairs(all) do
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

local function holds(status, kind)
  for _, one in ipairs(status.conditions or {}) do
    if one.type == kind and one.status == "True" then return true end
  end
  return false
end

-- Older ones only have a state.
local function ray_cluster(status)
  if status.conditions == nil then return status.state == "ready" end
  return holds(status, "HeadPodReady") and holds(status, "RayClusterProvisioned")
    and not holds(status, "RayClusterReplicaFailure")
end

local volcano_phases = {
  Pending = true, Running = true, Restarting = true, Completing = true, Completed = true,
  Aborting = true, Aborted = true, Terminating = true, Terminated = true,
}

function InterpretHealth(object)
  local status = object.status
  if status == nil then return false end
  if object.kind == "RayCluster" then return ray_cluster(status) end
  if object.kind == "RayService" then return holds(status, "Ready") end
  if object.kind == "RayJob" then
    local ended = status.jobDeploymentStatus == "Complete" and status.jobStatus == "SUCCEEDED"
    return status.jobDeploymentStatus == "Running" or ended
  end
  if object.kind == "SparkApplication" then
    local state = (status.applicationState or {}).state
    return state ~= nil and state ~= "FAILED"
  end
  if object.kind == "Job" then return volcano_phases[(status.state or {}).phase] == true end
  -- Those of Kubeflow are well as soon as something is known of them and it is not a failure.
  if status.conditions == nil or (object.kind == "MPIJob" and #status.conditions == 0) then return false end
  return not holds(status, "Failed")
end

-- The head, and the workers of all groups; each is taken for the largest. For RayServices. A worker of several
-- hosts is one: what is counted here is what ReviseReplica writes.
function GetReplicas(object)
  local all = parts(object)
  if #all == 0 or all[1].name ~= "ray-head" then return 0 end
  local replicas, needs = 0, kube.accuratePodRequirements(all[1].template)
  for _, part in ipairs(all) do
    replicas = replicas + part.replicas
    local own = part.template ~= nil and kube.accuratePodRequirements(part.template) or {}
    for _, name in ipairs({ "cpu", "memory" }) do
      local amount = (own.resourceRequest or {})[name]
      if amount ~= nil and needs ~= nil then
        needs.resourceRequest = needs.resourceRequest or {}
        local most = needs.resourceRequest[name]
        if kube.getResourceQuantity(amount) > kube.getResourceQuantity(most) then needs.resourceRequest[name] = amount end
      end
    end
  end
  return replicas, needs
end

-- The head stays; the workers are divided as they were, or evenly where there were none. Rounding up early must
-- not leave a group with fewer than none.
function ReviseReplica(object, replicas)
  local groups = ((object.spec or {}).rayClusterConfig or {}).workerGroupSpecs or {}
  local workers, before, given = math.max(0, replicas - 1), 0, 0
  for _, group in ipairs(groups) do before = before + (group.replicas or 0) end
  for at, group in ipairs(groups) do
    local share
    if at == #groups then
      share = workers - given
    elseif before > 0 then
      share = math.min(workers - given, math.floor(workers * (group.replicas or 0) / before + 0.5))
    else
      share = math.floor(workers / #groups) + (at <= workers % #groups and 1 or 0)
    end
    group.replicas = share
    given = given + share
  end
  return object
end
