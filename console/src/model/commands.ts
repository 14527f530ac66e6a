// Commands that people copy; a test of the command line holds them to its help.

export interface JoinCommands {
  push: string
  invite: string
  agent: string
}

export function joinCommands(name: string, instance: string, hub: string): JoinCommands {
  return {
    push: `atoll join ${name} --instance ${instance} \\\n  --kubeconfig ~/.kube/config --context ${name}`,
    invite: `atoll invite ${name} --context ${instance}`,
    agent: `atoll agent ${name} --hub ${hub} \\\n  --token TOKEN --ca-hash HASH --kubeconfig ~/.kube/config`,
  }
}
