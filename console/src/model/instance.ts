import type { Kind } from '../api/discovery'
import type { KObject } from '../api/types'
import type { Tone } from './health'

/** The colour of an instance's phase. */
export function phaseTone(phase: string | undefined): Tone {
  switch (phase) {
    case 'Ready':
      return 'ok'
    case 'Failed':
      return 'bad'
    case 'Paused':
      return 'warn'
    case 'Pending':
    case 'Terminating':
      return 'busy'
    default:
      return 'idle'
  }
}

/** Whether an instance is a simulated cluster with nodes of its own. */
export function isSimulated(instance: KObject | undefined): boolean {
  return instance?.metadata.annotations?.['sim.atoll.io/nodes'] !== undefined
}

/** Whether an instance borrows nodes. */
export function isBorrower(instance: KObject | undefined): boolean {
  return instance?.metadata.annotations?.['atoll.io/leases'] === 'true'
}

/** Whether an instance is there to have members: neither the hub's own nor a simulated cluster. */
export function isFleet(name: string, instance: KObject | undefined, kinds: Kind[] | undefined): boolean {
  if (name === 'root' || isSimulated(instance)) return false
  return kinds?.some((kind) => kind.group === 'cluster.karmada.io' && kind.plural === 'clusters') ?? false
}
