// The name of a row, as a link. Tables draw many of these each second, so it is no more than an anchor.

import type { MouseEvent } from 'react'
import { navigate } from 'wouter/use-browser-location'

const BASE = '/console'

export function NameLink({ href, name }: { href: string; name: string }) {
  return (
    <a className="name" href={BASE + href} title={name} onClick={follow}>
      {name}
    </a>
  )
}

function follow(event: MouseEvent<HTMLAnchorElement>): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return
  event.preventDefault()
  navigate(event.currentTarget.getAttribute('href') ?? BASE)
}
