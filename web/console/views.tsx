import type { ComponentChildren } from 'preact'
import { textOf } from '../page/location.ts'
import { EventPage } from './trace/event.tsx'
import { Trace } from './trace/trace.tsx'
import { Audit } from './views/audit.tsx'
import { Clients, SessionPage } from './views/clients.tsx'
import { Credentials } from './views/credentials.tsx'
import { Feed } from './views/feed.tsx'
import { Lifecycle } from './views/lifecycle.tsx'
import { InstitutionPage, LivestreamPage } from './views/livestream.tsx'
import { Livestreams } from './views/livestreams.tsx'
import { NodePage } from './views/node.tsx'
import { Overview } from './views/overview.tsx'
import { Users } from './views/users.tsx'
import { WebhookPage } from './views/webhook.tsx'
import { Webhooks } from './views/webhooks.tsx'

interface Shown {
  title: string
  content: ComponentChildren
}

/** The view of a path below `/console`. */
export function currentView(path: string): Shown {
  const [, , view = '', ...rest] = path.split('/')
  const name = rest.length > 0 ? textOf(rest.join('/')) : undefined
  const shown = Object.hasOwn(views, view) ? views[view]?.(name) : undefined
  return shown ?? { title: 'Not found', content: <NotFound /> }
}

const views: Readonly<Record<string, (name: string | undefined) => Shown | undefined>> = {
  '': () => ({ title: 'Overview', content: <Overview /> }),
  trace: (id) =>
    id === undefined
      ? { title: 'Trace', content: <Trace /> }
      : { title: `Event ${id}`, content: <EventPage id={id} /> },
  webhooks: (name) =>
    name === undefined
      ? { title: 'Webhooks', content: <Webhooks /> }
      : { title: 'Webhook', content: <WebhookPage name={name} /> },
  livestreams: (id) =>
    id === undefined
      ? { title: 'Livestreams', content: <Livestreams /> }
      : { title: 'Livestream', content: <LivestreamPage id={id} /> },
  institutions: (id) =>
    id === undefined ? undefined : { title: 'Institution', content: <InstitutionPage id={id} /> },
  credentials: () => ({ title: 'Credentials', content: <Credentials /> }),
  users: () => ({ title: 'Users', content: <Users /> }),
  clients: (clientId) =>
    clientId === undefined
      ? { title: 'Clients', content: <Clients /> }
      : { title: clientId, content: <SessionPage clientId={clientId} /> },
  feed: () => ({ title: 'Feed', content: <Feed /> }),
  lifecycle: () => ({ title: 'HTTPS API', content: <Lifecycle /> }),
  audit: () => ({ title: 'Audit log', content: <Audit /> }),
  node: () => ({ title: 'Node', content: <NodePage /> }),
}

function NotFound() {
  return (
    <div class="nothing">
      <h1>Not found</h1>
      <p>There is no such page in the console.</p>
    </div>
  )
}
