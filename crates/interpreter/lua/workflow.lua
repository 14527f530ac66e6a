-- Workflows of Argo.
local kube = require("kube")

-- All steps of a workflow as the containers of one pod, to find what they refer to.
local function steps(object)
  local spec, containers = object.spec or {}, {}
  local volumes = {}
  for _, volume in ipairs(spec.volumes or {}) do table.insert(volumes, volume) end
  for _, template in ipairs(spec.templates or {}) do
    for _, one in ipairs({ "container", "script" }) do
      if template[one] ~= nil then table.insert(containers, template[one]) end
    end
    for _, list in ipairs({ "initContainers", "sidecars" }) do
      for _, container in ipairs(template[list] or {}) do table.insert(containers, container) end
    end
    for _, volume in ipairs(template.volumes or {}) do table.insert(volumes, volume) end
  end
  return {
    spec = {
      serviceAccountName = spec.serviceAccountName, imagePullSecrets = spec.imagePullSecrets,
      volumes = volumes, containers = containers,
    },
  }
end

-- At most so many steps run at a time.
function GetReplicas(object)
  local spec = object.spec
  local pod = { affinity = spec.affinity, nodeSelector = spec.nodeSelector, tolerations = spec.tolerations }
  return spec.parallelism or 1, kube.accuratePodRequirements({ spec = pod })
end

function ReviseReplica(object, replicas)
  object.spec.parallelism = replicas
  return object
end

-- Suspended or resumed in the member; its state is no subresource.
function Retain(desired, observed)
  if observed.spec ~= nil and observed.spec.suspend ~= nil then desired.spec.suspend = observed.spec.suspend end
  if observed.status ~= nil then desired.status = observed.status end
  return desired
end

function InterpretHealth(object)
  local phase = (object.status or {}).phase
  return phase ~= nil and phase ~= "" and phase ~= "Failed" and phase ~= "Error"
end

function GetDependencies(object)
  local namespace = object.metadata.namespace
  local found = kube.getPodDependencies(steps(object), namespace)
  local account = (object.spec.executor or {}).serviceAccountName
  if account ~= nil and account ~= "" then
    table.insert(found, { apiVersion = "v1", kind = "ServiceAccount", namespace = namespace, name = account })
  end
  return found
end
