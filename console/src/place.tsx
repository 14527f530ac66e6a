// The instance a page is about, and what it serves.

import { createContext, type ReactNode, useContext, useMemo } from 'react'
import { type Kind, useKinds } from './api/discovery'
import type { ApiError } from './api/http'
import type { Place, Resource } from './api/paths'
import { useInstances } from './instances'
import { isFleet } from './model/instance'

interface Here {
  place: Place
  kinds?: Kind[]
  error?: ApiError
  /** Whether it has members, or is there to have some. */
  fleet: boolean
  serves: (resource: Resource) => boolean
  kindOf: (resource: Resource) => Kind | undefined
}

const HereContext = createContext<Here | null>(null)

export function InstanceHere({ instance, children }: { instance: string; children: ReactNode }) {
  const kinds = useKinds({ instance })
  const instances = useInstances()
  const value = useMemo<Here>(() => {
    const find = (resource: Resource) => kinds.value?.find((kind) => kind.group === resource.group && kind.plural === resource.plural)
    const fleet = isFleet(instance, instances.items.find((one) => one.metadata.name === instance), kinds.value)
    return { place: { instance }, kinds: kinds.value, error: kinds.error, fleet, serves: (resource) => find(resource) !== undefined, kindOf: find }
  }, [instance, kinds.value, kinds.error, instances.items])
  return <HereContext value={value}>{children}</HereContext>
}

/** Only inside pages of an instance. */
export function useHere(): Here {
  const here = useContext(HereContext)
  if (!here) throw new Error('no instance here')
  return here
}
