// Kubernetes quantities as numbers, and numbers for people.

const FACTORS: Record<string, number> = {
  n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
}

/** The value of a quantity; what is no quantity is zero. */
export function quantity(text: unknown): number {
  if (typeof text === 'number') return text
  if (typeof text !== 'string') return 0
  const match = /^([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(text.trim())
  if (!match) return 0
  const number = Number(match[1] + (match[2] ?? ''))
  return Number.isFinite(number) ? number * (FACTORS[match[3] ?? ''] ?? 1) : 0
}

export function cores(value: number): string {
  if (value === 0) return '0'
  if (value < 1) return `${Math.round(value * 1000)}m`
  return value < 100 ? trim(value.toFixed(1)) : Math.round(value).toLocaleString('en')
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']
  let unit = 0
  let rest = value
  while (rest >= 1024 && unit < units.length - 1) {
    rest /= 1024
    unit += 1
  }
  return `${rest < 100 && unit > 0 ? trim(rest.toFixed(1)) : Math.round(rest)} ${units[unit]}`
}

/** A quantity of a named resource for people. */
export function shown(resource: string, value: number): string {
  if (resource === 'cpu') return cores(value)
  if (/memory|storage/.test(resource)) return bytes(value)
  return trim(value.toFixed(2))
}

function trim(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}
