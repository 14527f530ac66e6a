// A page that fails says so, and the rest goes on.

import { Component, type ReactNode } from 'react'
import { t } from '../i18n'
import { Button, Notice } from './parts'

export class Boundary extends Component<{ children: ReactNode }, { error?: Error }> {
  state: { error?: Error } = {}

  static getDerivedStateFromError(error: Error) {
    return { error }
  }

  render() {
    if (!this.state.error) return this.props.children
    return (
      <div className="page">
        <Notice tone="bad" title={t('error.page')} action={<Button onClick={() => location.reload()}>{t('reload')}</Button>}>
          {this.state.error.message}
        </Notice>
      </div>
    )
  }
}
