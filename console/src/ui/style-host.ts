// xterm writes its styles into <style> elements, which the content policy forbids. This document
// hands it elements that look like them and put the text into sheets made by script instead.

export function documentWithSheets(): { document: Document; dispose: () => void } {
  const sheets = new Set<CSSStyleSheet>()
  const createElement = (name: string, options?: ElementCreationOptions): HTMLElement => {
    const element = document.createElement(name === 'style' ? 'template' : name, options)
    if (name !== 'style') return element
    const sheet = new CSSStyleSheet()
    sheets.add(sheet)
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
    Object.defineProperty(element, 'textContent', { set: (text: string) => sheet.replaceSync(text), get: () => '' })
    return element
  }
  const proxy = new Proxy(document, {
    get(target, property) {
      if (property === 'createElement') return createElement
      const value = Reflect.get(target, property, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    set: (target, property, value) => Reflect.set(target, property, value, target),
  })
  const dispose = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.has(sheet))
  }
  return { document: proxy, dispose }
}
