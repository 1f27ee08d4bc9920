import type { ComponentChildren } from 'preact'
import { textOf } from '../page/location.ts'
import { user } from '../page/session.ts'
import { commandNamed, commandsIn, pageIn, permissionOf } from './placed.ts'
import { pathShown } from './start-view.ts'
import { titleOf } from './titles.ts'
import { OwnCheck } from './trace/dry-run.tsx'
import { EventPage } from './trace/event.tsx'
import { OwnEventPage } from './trace/own-event.tsx'
import { OwnEvents, OwnRefusals } from './trace/own-events.tsx'
import { Trace } from './trace/trace.tsx'
import { AllCommands, CommandPage } from './views/all-commands.tsx'
import { GeneratedPage, GeneratedView } from './views/generated.tsx'
import { InstitutionPage, LivestreamPage } from './views/livestream.tsx'
import { Livestreams } from './views/livestreams.tsx'
import { Overview } from './views/overview.tsx'
import { OwnReport } from './views/own-report.tsx'
import { WebhookPage } from './views/webhook.tsx'
import { Webhooks } from './views/webhooks.tsx'

interface Shown {
  title: string
  content: ComponentChildren
}

/** The view of a path below `/console`. */
export function currentView(path: string): Shown {
  const [, , view = '', ...rest] = pathShown(path).replace(/\/$/, '').split('/')
  const permission = permissionOf(view)
  if (!user.value?.permissions.includes(permission))
    return { title: 'Not permitted', content: <NotPermitted permission={permission} /> }
  const name = rest.length > 0 ? textOf(rest.join('/')) : undefined
  const made = Object.hasOwn(handMade, view) ? handMade[view] : undefined
  return made?.(name) ?? generated(view, name) ?? { title: 'Not found', content: <NotFound /> }
}

/** A view that is made from the rows of its commands, or the page of one thing in it. */
function generated(view: string, name: string | undefined): Shown | undefined {
  const title = titleOf(view)
  if (title === undefined || commandsIn(view).length === 0) return undefined
  if (name === undefined) return { title, content: <GeneratedView view={view} title={title} /> }
  const command = pageIn(view)
  return command && { title: name, content: <GeneratedPage command={command} title={title} of={name} /> }
}

/** Undefined: the view, or the page of a thing in it, is generated. */
const handMade: Readonly<Record<string, (name: string | undefined) => Shown | undefined>> = {
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
  'own-refusals': (id) =>
    id === undefined
      ? { title: 'Refusals', content: <OwnRefusals /> }
      : { title: `Event ${id}`, content: <OwnEventPage id={id} view="own-refusals" /> },
  'own-events': (id) =>
    id === undefined
      ? { title: 'Events', content: <OwnEvents /> }
      : { title: `Event ${id}`, content: <OwnEventPage id={id} view="own-events" /> },
  'own-report': () => ({ title: 'Weekly report', content: <OwnReport /> }),
  'own-check': () => ({ title: 'Dry run', content: <OwnCheck /> }),
  institutions: (id) =>
    id === undefined ? undefined : { title: 'Institution', content: <InstitutionPage id={id} /> },
  commands(name) {
    if (name === undefined) return { title: 'All commands', content: <AllCommands /> }
    const command = commandNamed(name)
    return command?.permission === 'operate'
      ? { title: name, content: <CommandPage command={command} /> }
      : undefined
  },
}

function NotPermitted({ permission }: { permission: string }) {
  return (
    <div class="nothing">
      <h1>{permission === 'operate' ? 'This is for operators' : 'This is not for you'}</h1>
      <p>
        {user.value?.email} does not have the permission <code>{permission}</code>. An operator of the hub can
        give it.
      </p>
      <p>
        <a href="/">What is on air</a>
      </p>
    </div>
  )
}

function NotFound() {
  return (
    <div class="nothing">
      <h1>Not found</h1>
      <p>There is no such page in the console.</p>
    </div>
  )
}
