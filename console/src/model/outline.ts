// Where in a YAML text a cursor is, told by indentation alone: text that is being typed rarely parses.

export interface Spot {
  /** Keys from the top; `[]` stands for an item of a list. */
  path: string[]
  /** Keys that are beside it already. */
  beside: string[]
  /** The key whose value is being typed; null when it is a key. */
  valueOf: string | null
}

interface Line {
  indent: number
  key: string | null
  item: boolean
}

const LINE = /^(\s*)((?:- +)*)(?:- *$|(?:"([^"]+)"|'([^']+)'|([^\s#:'"[\]{}-][^\s:#]*)) *:(?: |$))?/

function read(text: string): Line {
  const match = LINE.exec(text)
  const dashes = match?.[2] ?? ''
  const bare = /^\s*-\s*$/.test(text)
  const indent = (match?.[1]?.length ?? 0) + dashes.length
  return { indent, key: match?.[3] ?? match?.[4] ?? match?.[5] ?? null, item: dashes !== '' || bare }
}

/** The spot at the end of `lines[at]` cut at `column`; lines are those of one document. */
export function spotAt(lines: string[], at: number, column: number): Spot {
  const typed = (lines[at] ?? '').slice(0, column)
  const own = read(typed)
  const value = /^\s*(?:- +)*(?:"([^"]+)"|'([^']+)'|([^\s#:'"-][^\s:]*)) *: /.exec(typed)
  const path: string[] = []
  const beside: string[] = []
  const lead = /^\s*(?:- +)*/.exec(typed)?.[0] ?? ''
  let indent = lead.length
  // A dash of its own line opens an item: what is beside belongs to other items.
  let open = !own.item
  if (own.item) path.unshift('[]')
  let dash = own.item ? (/^\s*/.exec(typed)?.[0].length ?? 0) : -1
  for (let line = at - 1; line >= 0; line -= 1) {
    const text = lines[line] ?? ''
    if (!text.trim() || /^\s*#/.test(text)) continue
    const one = read(text)
    const outer = /^\s*/.exec(text)?.[0].length ?? 0
    if (dash >= 0) {
      // Looking for the key that owns the list: at the dash or left of it, and no item itself.
      if (one.item ? outer < dash : outer <= dash && one.key) {
        if (one.key) path.unshift(one.key)
        indent = one.indent
        dash = one.item ? outer : -1
        if (one.item) path.unshift('[]')
        open = false
      }
      continue
    }
    if (one.indent === indent && open && one.key) beside.push(one.key)
    if (one.indent < indent && one.key) {
      path.unshift(one.key)
      indent = one.indent
      open = false
    }
    if (one.item && one.indent <= indent && one.indent >= outer && one.indent === indent) {
      path.unshift('[]')
      dash = outer
    }
  }
  for (let line = at + 1, going = !own.item; going && line < lines.length; line += 1) {
    const text = lines[line] ?? ''
    if (!text.trim()) continue
    const one = read(text)
    going = one.indent >= lead.length && !(one.item && one.indent === lead.length)
    if (going && one.indent === lead.length && one.key) beside.push(one.key)
  }
  return { path, beside, valueOf: value ? (value[1] ?? value[2] ?? value[3] ?? null) : null }
}

/** The lines of the document around a position, and where in them it is. */
export function documentAt(lines: string[], at: number): { lines: string[]; at: number } {
  let from = at
  while (from > 0 && !/^---/.test(lines[from - 1] ?? '')) from -= 1
  let to = at + 1
  while (to < lines.length && !/^---/.test(lines[to] ?? '')) to += 1
  return { lines: lines.slice(from, to), at: at - from }
}

/** What a document says it is. */
export function kindOf(lines: string[]): { apiVersion: string; kind: string } {
  const value = (key: string) => lines.map((line) => new RegExp(`^${key}: *["']?([^"'\\s#]+)`).exec(line)?.[1]).find(Boolean) ?? ''
  return { apiVersion: value('apiVersion'), kind: value('kind') }
}
