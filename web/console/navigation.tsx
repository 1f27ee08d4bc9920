import { currentPath } from '../page/location.ts'
import { nodeState } from './node-state.ts'
import { isReached } from './operate.ts'
import type { View } from './operations.ts'

const groups: readonly (readonly [
  title: string,
  views: readonly (readonly [view: View, title: string])[],
])[] = [
  [
    'Watch',
    [
      ['', 'Overview'],
      ['trace', 'Trace'],
      ['livestreams', 'Livestreams'],
      ['webhooks', 'Webhooks'],
    ],
  ],
  [
    'Access',
    [
      ['credentials', 'Credentials'],
      ['users', 'Users'],
      ['clients', 'Clients'],
    ],
  ],
  [
    'Hub',
    [
      ['feed', 'Feed'],
      ['lifecycle', 'HTTPS API'],
      ['audit', 'Audit log'],
      ['node', 'Node'],
    ],
  ],
]

/** The views, grouped by purpose. */
export function Navigation() {
  const [, , current = ''] = currentPath.value.split('/')
  return (
    <nav class="rail" aria-label="Console">
      {groups.map(([group, views]) => (
        <div key={group}>
          <h2>{group}</h2>
          <ul>
            {views.map(([view, title]) => (
              <li key={view}>
                <a href={pathOf(view)} aria-current={current === view ? 'page' : undefined}>
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  )
}

function pathOf(view: View): string {
  return view === '' ? '/console' : `/console/${view}`
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
