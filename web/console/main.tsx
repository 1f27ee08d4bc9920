import './styles/desk.css'
import './styles/overview.css'
import './styles/tables.css'
import './styles/forms.css'
import './styles/narrow.css'
import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary, useLayoutEffect, useRef } from 'preact/hooks'
import { focusContent } from '../page/focus.ts'
import { currentPath } from '../page/location.ts'
import { mustLogIn, user } from '../page/session.ts'
import { Shell } from '../page/shell.tsx'
import { startPage } from '../page/start.tsx'
import { FirstOperator, firstOperatorPath } from './first-operator.tsx'
import { useNames } from './livestream-names.ts'
import { Navigation, NodeState } from './navigation.tsx'
import { useNodeState } from './node-state.ts'
import { currentView } from './views.tsx'

/** The operators' console: the commands of `hubctl`, in a browser. */
function Console() {
  const who = user.value
  const isFirst = currentPath.value === firstOperatorPath
  // A layout effect: until it ends, the head would show a button to log in.
  useLayoutEffect(() => {
    if (who === null && !isFirst) mustLogIn.value = true
  }, [who, isFirst])
  return (
    <Shell title="Console" home="/console" need="operate" tools={who && isOperator() ? <NodeState /> : null}>
      {isFirst ? <FirstOperator /> : who ? isOperator() ? <Desk /> : <NoOperator /> : null}
    </Shell>
  )
}

function isOperator(): boolean {
  return user.value?.permissions.includes('operate') ?? false
}

/** Focuses the content and shows its top: `focusContent` alone does not scroll. */
function showFromItsTop(): void {
  focusContent()
  window.scrollTo(0, 0)
}

function Desk() {
  useNodeState()
  useNames()
  const { title, content } = currentView(currentPath.value)
  const shown = useRef(currentPath.value)
  useEffect(() => {
    document.title = `${title} – Console`
  }, [title])
  useEffect(() => {
    // Moves the focus for people who do not see that the view has changed.
    if (shown.current !== currentPath.value) showFromItsTop()
    shown.current = currentPath.value
  }, [currentPath.value])
  return (
    <div class="desk">
      <Navigation />
      <View key={currentPath.value}>{content}</View>
    </div>
  )
}

/** One view. An answer that it cannot show leaves the other views as they are. */
function View({ children }: { children: ComponentChildren }) {
  const [error] = useErrorBoundary((problem) => reportError(problem))
  return (
    <div class="view">
      {error === undefined ? (
        children
      ) : (
        <div class="nothing" role="alert">
          <h1>This cannot be shown</h1>
          <p>The node may be of another release than this page. Load the page again.</p>
        </div>
      )}
    </div>
  )
}

function NoOperator() {
  return (
    <div class="nothing">
      <h1>This is for operators</h1>
      <p>
        {user.value?.email} does not have the permission <code>operate</code>. An operator of the hub can give
        it.
      </p>
      <p>
        <a href="/">What is on air</a>
      </p>
    </div>
  )
}

startPage(<Console />, (path) => path === '/console' || path.startsWith('/console/'))
