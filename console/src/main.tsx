import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app'
import { preferredLanguage, setLanguage } from './i18n'
import './style/tokens.css'
import './style/base.css'
import './style/parts.css'
import './style/shell.css'
import './style/pages.css'
import { applyTheme } from './ui/theme'

applyTheme()
const root = document.getElementById('root')
if (root) {
  void setLanguage(preferredLanguage()).finally(() =>
    createRoot(root).render(
      <StrictMode>
        <App />
      </StrictMode>,
    ),
  )
}
