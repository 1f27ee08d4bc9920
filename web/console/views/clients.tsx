import { useSignal } from '@preact/signals'
import type { ShownSession } from '../../../operations/clients.ts'
import { go, pathPart } from '../../page/location.ts'
import { Action } from '../parts/action.tsx'
import { Badge, Facts, Head, Problem, When } from '../parts/shown.tsx'
import { SomeOrAll } from '../parts/switch.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { amount, bytes, count, dateAndTime } from '../words.ts'

const everyMs = 5_000

/** The connected clients, and the sessions that wait for their clients. */
export function Clients() {
  const clients = useCommandAnswer('clients.list', {}, everyMs)
  return (
    <>
      <Head title="Clients" />
      <Problem text={clients.problem.value} />
      <section class="panel">
        <h2>Connected</h2>
        <Table
          caption="Connected clients"
          rows={clients.value.value}
          keyOf={({ clientId, node }) => `${node} ${clientId}`}
          textOf={({ clientId, username, address, subscriptions }) =>
            [clientId, username, address, ...subscriptions].join(' ')
          }
          empty="Nobody is connected."
          columns={[
            { title: 'Client', cell: ({ clientId }) => <SessionLink clientId={clientId} /> },
            { title: 'Username', cell: ({ username }) => <span class="id">{username}</span> },
            { title: 'Address', cell: ({ address }) => address },
            { title: 'Since', cell: ({ connectedAt }) => <When at={connectedAt} /> },
            { title: 'Reads', cell: ({ subscriptions }) => <Filters filters={subscriptions} /> },
            { title: 'In flight', isNumber: true, cell: ({ inFlight }) => count(inFlight) },
            { title: 'Unsent', isNumber: true, cell: ({ pendingBytes }) => bytes(pendingBytes) },
            {
              title: 'Actions',
              isUntitled: true,
              cell: ({ clientId }) => (
                <Action
                  name="clients.disconnect"
                  args={{ clientId }}
                  label="Disconnect"
                  about={clientId}
                  done={clients.refresh}
                />
              ),
            },
          ]}
        />
      </section>
      <Sessions />
    </>
  )
}

function Sessions() {
  const sessions = useCommandAnswer('sessions.list', {}, everyMs)
  const isAll = useSignal(false)
  const away = sessions.value.value?.filter(({ connected }) => !connected)
  return (
    <section class="panel">
      <h2>Sessions</h2>
      <Problem text={sessions.problem.value} />
      <Table
        caption="Sessions"
        rows={isAll.value ? sessions.value.value : away}
        keyOf={({ clientId }) => clientId}
        textOf={({ clientId, username, subscriptions }) => [clientId, username, ...subscriptions].join(' ')}
        empty={isAll.value ? 'There is no session.' : 'No session waits for its client.'}
        tools={
          <SomeOrAll
            isAll={isAll}
            name="Client is away"
            some={away?.length ?? 0}
            all={sessions.value.value?.length ?? 0}
          />
        }
        columns={[
          { title: 'Client', cell: ({ clientId }) => <SessionLink clientId={clientId} /> },
          { title: 'State', cell: stateOf },
          { title: 'Username', cell: ({ username }) => <span class="id">{username}</span> },
          { title: 'Reads', cell: ({ subscriptions }) => <Filters filters={subscriptions} /> },
          { title: 'Queued', isNumber: true, cell: ({ queued }) => (queued === null ? '–' : count(queued)) },
          { title: 'Dropped', isNumber: true, cell: ({ dropped }) => count(dropped) },
          { title: 'Ends', cell: ({ expiresAt }) => <When at={expiresAt} /> },
          {
            title: 'Actions',
            isUntitled: true,
            cell: (session) => <Drop session={session} done={sessions.refresh} />,
          },
        ]}
      />
    </section>
  )
}

/** One session, with the number of messages that its client would get if it connected now. */
export function SessionPage({ clientId }: { clientId: string }) {
  const { value, problem } = useCommandAnswer('sessions.show', { clientId }, everyMs)
  const session = value.value
  return (
    <>
      <p class="back">
        <a href="/console/clients">Clients</a>
      </p>
      <Head title={clientId}>{session && stateOf(session)}</Head>
      <Problem text={problem.value} />
      {session && (
        <section class="panel">
          <Facts
            of={[
              ['Username', <span class="id">{session.username}</span>],
              [
                'Kind',
                session.persistent
                  ? 'persistent: it waits for its client'
                  : 'clean: it ends with its connection',
              ],
              ['Node', session.node],
              ['Made', dateAndTime(session.createdAt)],
              ['Away since', session.disconnectedAt && <When at={session.disconnectedAt} />],
              ['Ends', session.expiresAt && <When at={session.expiresAt} />],
              [
                session.connected ? 'Queued' : 'Would get now',
                session.queued !== null && amount(session.queued, 'message'),
              ],
              ['In flight', session.inFlight !== null && count(session.inFlight)],
              ['Dropped', count(session.dropped)],
              [
                'Reads',
                <ul key="reads">
                  {session.subscriptions.slice(0, 200).map((filter) => (
                    <li key={filter} class="id">
                      {filter}
                    </li>
                  ))}
                </ul>,
              ],
            ]}
          />
          <div class="buttons">
            <Drop session={session} done={() => go('/console/clients')} />
          </div>
        </section>
      )}
    </>
  )
}

function SessionLink({ clientId }: { clientId: string }) {
  return (
    <a href={`/console/clients/${pathPart(clientId)}`} class="id">
      {clientId}
    </a>
  )
}

function stateOf({ connected, persistent }: ShownSession) {
  return (
    <Badge tone={connected ? 'good' : 'plain'}>
      {connected ? 'connected' : persistent ? 'away' : 'ended'}
    </Badge>
  )
}

function Filters({ filters }: { filters: readonly string[] }) {
  const [first] = filters
  if (first === undefined) return <span class="muted">nothing</span>
  return (
    <span class="id">
      {first}
      {filters.length > 1 && ` and ${filters.length - 1} more`}
    </span>
  )
}

function Drop({ session, done }: { session: ShownSession; done: () => void }) {
  const { clientId, queued, persistent, connected } = session
  return (
    <Action
      name="sessions.drop"
      args={{ clientId }}
      label="Drop"
      about={clientId}
      loss={
        <p>
          The session of {clientId} is lost with its subscriptions
          {persistent
            ? ` and ${queued === null ? 'everything' : amount(queued, 'message')} that it has not got yet`
            : ''}
          .{connected ? ' Its client is disconnected.' : ''}
        </p>
      }
      done={done}
    />
  )
}
