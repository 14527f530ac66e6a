// Who is signed in, and which page is shown.

import { lazy, Suspense, useEffect, useSyncExternalStore } from 'react'
import { Redirect, Route, Router, Switch } from 'wouter'
import { forgetAccess } from './api/access'
import { forgetKinds } from './api/discovery'
import { dropAll } from './api/live'
import { forgetSchemas } from './api/schemas'
import { useLanguage } from './i18n'
import { InstanceHere } from './place'
import { Home } from './pages/home'
import { SignIn } from './pages/sign-in'
import { subscribe, token } from './session'
import { Boundary } from './ui/boundary'
import { Bones } from './ui/parts'
import { Shell } from './shell/shell'
import { Toasts } from './ui/toast'

const Overview = lazy(() => import('./pages/overview'))
const Clusters = lazy(() => import('./pages/clusters'))
const ClusterPage = lazy(() => import('./pages/cluster'))
const Resources = lazy(() => import('./pages/resources'))
const Kinds = lazy(() => import('./pages/kinds'))
const ObjectPage = lazy(() => import('./pages/object'))
const Propagation = lazy(() => import('./pages/propagation'))
const Policies = lazy(() => import('./pages/policies'))
const PolicyEditor = lazy(() => import('./pages/policy-editor'))
const PolicyChange = lazy(() => import('./pages/policy-editor').then((module) => ({ default: module.PolicyChange })))
const VirtualNodes = lazy(() => import('./pages/virtual-nodes'))
const Search = lazy(() => import('./pages/search'))
const Activity = lazy(() => import('./pages/activity'))
const Access = lazy(() => import('./pages/access'))
const InstanceSettings = lazy(() => import('./pages/instance-settings'))
const Settings = lazy(() => import('./pages/settings'))

export function App() {
  const signedIn = useSyncExternalStore(subscribe, () => token() !== null)
  const language = useLanguage()
  useEffect(() => {
    if (signedIn) return
    dropAll()
    forgetAccess()
    forgetKinds()
    forgetSchemas()
  }, [signedIn])
  return (
    <Router base="/console" key={language}>
      {signedIn ? (
        <Shell>
          <Pages />
        </Shell>
      ) : (
        <SignIn />
      )}
      <Toasts />
    </Router>
  )
}

function Pages() {
  return (
    <Suspense
      fallback={
        <div className="page">
          <Bones lines={6} />
        </div>
      }
    >
      <Switch>
        <Route path="/" component={Home} />
        <Route path="/settings">
          <Boundary>
            <Settings />
          </Boundary>
        </Route>
        <Route path="/i/:instance/*?">{({ instance }) => <InstancePages instance={decodeURIComponent(instance)} />}</Route>
        <Route>
          <Redirect to="/" />
        </Route>
      </Switch>
    </Suspense>
  )
}

function InstancePages({ instance }: { instance: string }) {
  return (
    <InstanceHere instance={instance} key={instance}>
      <Boundary>
        <Switch>
          <Route path="/i/:i" component={Overview} />
          <Route path="/i/:i/clusters" component={Clusters} />
          <Route path="/i/:i/clusters/:name">{({ name }) => <ClusterPage name={decodeURIComponent(name)} key={name} />}</Route>
          <Route path="/i/:i/r/:group/:version/:plural">{(at) => <Resources {...at} key={`${at.group}/${at.plural}`} />}</Route>
          <Route path="/i/:i/o/:group/:version/:plural/:namespace/:name">{(at) => <ObjectPage {...at} key={JSON.stringify(at)} />}</Route>
          <Route path="/i/:i/kinds" component={Kinds} />
          <Route path="/i/:i/propagation" component={Propagation} />
          <Route path="/i/:i/policies" component={Policies} />
          <Route path="/i/:i/policies/new" component={PolicyEditor} />
          <Route path="/i/:i/policies/edit/:plural/:namespace/:name">{(at) => <PolicyChange plural={at.plural} namespace={decodeURIComponent(at.namespace)} name={decodeURIComponent(at.name)} key={JSON.stringify(at)} />}</Route>
          <Route path="/i/:i/nodes" component={VirtualNodes} />
          <Route path="/i/:i/search" component={Search} />
          <Route path="/i/:i/activity" component={Activity} />
          <Route path="/i/:i/access" component={Access} />
          <Route path="/i/:i/settings" component={InstanceSettings} />
          <Route>
            <Redirect to={`/i/${encodeURIComponent(instance)}`} />
          </Route>
        </Switch>
      </Boundary>
    </InstanceHere>
  )
}
