import { currentPath } from '../page/location.ts'
import { user } from '../page/session.ts'
import { nodeState } from './node-state.ts'
import { isReached } from './operate.ts'
import { pathShown } from './start-view.ts'
import { groupsFor } from './titles.ts'

/** The views, grouped by purpose. */
export function Navigation() {
  const [, , current = ''] = pathShown(currentPath.value).split('/')
  return (
    <nav class="rail" aria-label="Console">
      {groupsFor(user.value?.permissions ?? []).map(([group, views, lacking]) => (
        <div key={group}>
          <h2>{group}</h2>
          <ul>
            {views.map(([view, title]) => (
              <li key={view}>
                <a
                  href={view === '' ? '/console' : `/console/${view}`}
                  aria-current={current === view ? 'page' : undefined}
                >
                  {title}
                </a>
              </li>
            ))}
          </ul>
          {[...lacking].map(([permission, titles]) => (
            <p key={permission} class="muted">
              {titles.join(', ')}: with the permission <code>{permission}</code>, which an operator gives
            </p>
          ))}
        </div>
      ))}
    </nav>
  )
}

/** Shows which node the page asks, and whether it answers. */
export function NodeState() {
  const status = nodeState.value
  const state = isReached.value === undefined ? 'connecting' : isReached.value ? 'live' : 'lost'
  const words = { connecting: 'Connecting', live: 'Answers', lost: 'Does not answer' }[state]
  return (
    <>
      {status && (
        <p class="which" title="The node that answers this page">
          <span>{status.node}</span>
          <small>
            {status.version} · {status.stage}
          </small>
        </p>
      )}
      <p class={`connection ${state}`} role="status">
        <span class="dot" aria-hidden="true" />
        {words}
      </p>
    </>
  )
}
