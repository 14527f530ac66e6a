-- Notebooks of Kubeflow: one pod each.
local kube = require("kube")

function GetReplicas(object)
  return 1, kube.accuratePodRequirements(object.spec.template)
end

function ReflectStatus(object)
  local from, status = object.status or {}, {}
  for _, field in ipairs({ "readyReplicas", "conditions", "containerState" }) do status[field] = from[field] end
  return status
end

function AggregateStatus(object, items)
  local status, ready = object.status or {}, nil
  for _, item in ipairs(items) do
    local member = item.status or {}
    if member.readyReplicas ~= nil then ready = (ready or 0) + member.readyReplicas end
    status.conditions = member.conditions or status.conditions
    status.containerState = member.containerState or status.containerState
  end
  status.readyReplicas = ready
  object.status = status
  return object
end

function InterpretHealth(object)
  return ((object.status or {}).readyReplicas or 0) > 0
end
