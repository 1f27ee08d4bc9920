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

/** The console: the commands of `hubctl` for operators, and for users of institutions what is their own. */
function Console() {
  const who = user.value
  const isFirst = currentPath.value === firstOperatorPath
  // A layout effect: until it ends, the head would show a button to log in.
  useLayoutEffect(() => {
    if (who === null && !isFirst) mustLogIn.value = true
  }, [who, isFirst])
  return (
    <Shell
      title="Console"
      home="/console"
      need="publish, subscribe or operate"
      tools={who ? <NodeState /> : null}
    >
      {isFirst ? <FirstOperator /> : who ? <Desk /> : null}
    </Shell>
  )
}

/** Focuses the content and shows its top: `focusContent` alone does not scroll. */
function showFromItsTop(): void {
  focusContent()
  window.scrollTo(0, 0)
}

function Desk() {
  const isOperator = user.value?.permissions.includes('operate') ?? false
  useNodeState(isOperator)
  useNames(isOperator)
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

startPage(<Console />, (path) => path === '/console' || path.startsWith('/console/'))
