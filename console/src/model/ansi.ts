// Text from containers: what only a terminal understands is taken out.

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are the point
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[@-Z\\-_])/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: the same
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f]/g
/** Marks that turn the direction of text around and can hide what a line says. */
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g

export function plainText(line: string): string {
  return line.replace(ESCAPES, '').replace(CONTROLS, '').replace(TURNS, '')
}

/** The time the server put before a line, and the line. */
export function splitTime(line: string): { time: string; text: string } {
  const match = /^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) ?/.exec(line)
  return match ? { time: match[1] ?? '', text: line.slice(match[0].length) } : { time: '', text: line }
}
