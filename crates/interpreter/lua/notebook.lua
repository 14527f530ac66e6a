-- Notebooks of Kubeflow: one pod each.
local kube = require("kube")

function GetReplicas(object)
  return 1, kube.accuratePodRequirements(object.spec.template)
end

function ReflectStatus(object)
  local from, status = object.status, {}
  if from == nil then return status end
  status.readyReplicas = from.readyReplicas or 0
  status.containerState = from.containerState
  status.conditions = from.conditions
  return status
end

-- Members' states as one: the last that is not running, else the one that has run for the shortest time.
local function state(items)
  local failed, running, found = {}, 0, nil
  for _, item in ipairs(items) do
    if item.status ~= nil then
      local own = item.status.containerState or {}
      if own.running == nil or own.waiting ~= nil or own.terminated ~= nil then
        table.insert(failed, item.clusterName)
        found = next(own) ~= nil and own or { waiting = { reason = "Unschedulable" } }
      elseif #failed == 0 then
        running = running + 1
        local since = own.running.startedAt or ""
        if found == nil or since > (found.running.startedAt or "") then found = own end
      end
    end
  end
  return found, failed, running
end

function AggregateStatus(object, items)
  if #items == 1 then
    object.status = items[1].status
    return object
  end
  local status, conditions = {}, {}
  local found, failed, running = state(items)
  add_up(status, { "readyReplicas" }, items)
  status.containerState = found
  if #failed > 0 then
    local message = "Notebook executed failed in member clusters: " .. table.concat(failed, ", ")
    table.insert(conditions, { type = "Failed", status = "True", reason = "NotebookFailed", message = message })
  end
  if running == #items and running > 0 then
    table.insert(conditions, { type = "Ready", status = "True", reason = "Ready", message = "All notebooks are ready" })
  end
  status.conditions = conditions
  object.status = status
  return object
end

local ends = { Error = true, OOMKilled = true, ContainerCannotRun = true }

-- It runs, is about to, or has ended well.
function InterpretHealth(object)
  local own = (object.status or {}).containerState or {}
  if own.running ~= nil then return true end
  if own.waiting ~= nil then return own.waiting.reason == "ContainerCreating" end
  if own.terminated ~= nil then return not ends[own.terminated.reason] and (own.terminated.exitCode or 0) == 0 end
  return false
end
