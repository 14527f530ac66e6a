// xterm writes its styles into <style> elements, which the content policy forbids. This document
// hands it elements that look like them and put the text into sheets made by script instead.

export interface StyleHost {
  /** The document to hand over. */
  document: Document
  /** Runs something during which the real document makes such elements too. */
  during: (deed: () => void) => void
  dispose: () => void
}

export function documentWithSheets(): StyleHost {
  const make = document.createElement.bind(document)
  const sheets = new Set<CSSStyleSheet>()
  const createElement = (name: string, options?: ElementCreationOptions): HTMLElement => {
    const element = make(name === 'style' ? 'template' : name, options)
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
  // Part of xterm asks the real document whatever it was given, but only while it opens.
  const during = (deed: () => void) => {
    Object.defineProperty(document, 'createElement', { value: createElement, configurable: true })
    try {
      deed()
    } finally {
      Reflect.deleteProperty(document, 'createElement')
    }
  }
  const dispose = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.has(sheet))
  }
  return { document: proxy, during, dispose }
}
