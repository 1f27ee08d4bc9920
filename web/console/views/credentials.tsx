import { useSignal } from '@preact/signals'
import type { ShownClient } from '../../../operations/clients.ts'
import type { IssuedCredential, ShownCredential } from '../../../operations/credentials.ts'
import { institutionName } from '../names.ts'
import { Action } from '../parts/action.tsx'
import { Badge, Head, keptForUser, Problem, Secret, ShownOnce, When } from '../parts/shown.tsx'
import { SomeOrAll } from '../parts/switch.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { amount, count } from '../words.ts'
import { AddCredential } from './add-credential.tsx'
import { RotateCredential } from './rotate-credential.tsx'

const everyMs = 5_000

/** A credential that was just made. `replaces`: the older credential that it succeeds. */
type Issued = IssuedCredential & { replaces?: string; revokeAt?: string | null }

const issued = keptForUser<Issued>()

/** The MQTT credentials, each with the clients that are connected with it. */
export function Credentials() {
  const credentials = useCommandAnswer('credentials.list', {}, everyMs)
  const clients = useCommandAnswer('clients.list', {}, everyMs)
  const isAll = useSignal(false)
  const open = useSignal<'add' | ShownCredential | undefined>(undefined)
  const connected = byUsername(clients.value.value ?? [])
  const all = credentials.value.value
  // Each open page has a credential of its own. They would hide the others.
  const others = all?.filter(({ user }) => user === undefined)
  const isShownAll = isAll.value || others?.length === all?.length
  const done = (result: IssuedCredential) => {
    issued.value = result
    open.value = undefined
    credentials.refresh()
  }
  const cancelled = () => {
    open.value = undefined
  }
  return (
    <>
      <Head title="Credentials">
        <button
          type="button"
          class="strong"
          onClick={() => {
            open.value = 'add'
          }}
        >
          Add a credential
        </button>
      </Head>
      {issued.value && <Password key={issued.value.username} {...issued.value} />}
      {open.value === 'add' && <AddCredential done={done} cancelled={cancelled} />}
      {typeof open.value === 'object' && (
        <RotateCredential
          key={open.value.username}
          credential={open.value}
          done={done}
          cancelled={cancelled}
        />
      )}
      <Problem text={credentials.problem.value ?? clients.problem.value} />
      <section class="panel">
        <Table
          caption="Credentials"
          rows={isShownAll ? all : others}
          tools={
            all &&
            others &&
            others.length < all.length && (
              <SomeOrAll isAll={isAll} name="Without pages" some={others.length} all={all.length} />
            )
          }
          keyOf={({ username }) => username}
          textOf={(one) =>
            [
              ...[one.username, one.role, one.label, one.user],
              ...[...one.institutions, ...one.institutions.map(institutionName), ...one.filters],
            ].join(' ')
          }
          empty="There is no credential yet."
          columns={[
            {
              title: 'Username',
              cell: ({ username, user, revokeAt }) => (
                <>
                  <span class="id">{username}</span>
                  {user && <small class="below">a page of {user}</small>}
                  {revokeAt && (
                    <small class="below">
                      ends <When at={revokeAt} />
                    </small>
                  )}
                </>
              ),
            },
            { title: 'Role', cell: ({ role }) => <Badge tone="plain">{role}</Badge> },
            { title: 'May', cell: mayDo },
            {
              title: 'Connected',
              cell: ({ username }) => <Connected clients={connected.get(username) ?? []} />,
            },
            {
              title: 'Last used',
              cell: (one) => <LastUsed credential={one} clients={connected.get(one.username) ?? []} />,
            },
            { title: 'Made', cell: ({ createdAt }) => <When at={createdAt} /> },
            {
              title: 'Actions',
              isUntitled: true,
              cell: (one) => (
                <span class="buttons">
                  {one.user === undefined && (
                    <button
                      type="button"
                      aria-label={`Rotate: ${one.username}`}
                      onClick={() => {
                        open.value = one
                      }}
                    >
                      Rotate
                    </button>
                  )}
                  <Revoke
                    credential={one}
                    clients={connected.get(one.username) ?? []}
                    done={credentials.refresh}
                  />
                </span>
              ),
            },
          ]}
        />
      </section>
    </>
  )
}

function byUsername(clients: readonly ShownClient[]): ReadonlyMap<string, readonly ShownClient[]> {
  const found = new Map<string, ShownClient[]>()
  for (const client of clients) {
    const others = found.get(client.username)
    if (others) others.push(client)
    else found.set(client.username, [client])
  }
  return found
}

function mayDo({ role, institutions, filters, classes }: ShownCredential) {
  const isPublisher = role === 'publisher'
  const what = isPublisher ? institutions.map(institutionName) : filters
  return (
    <span class={isPublisher ? '' : 'id'} dir="auto">
      {what.slice(0, 3).join(', ')}
      {what.length > 3 && ` and ${what.length - 3} more`}
      {classes.length > 0 && ` (${classes.join(', ')})`}
    </span>
  )
}

function Connected({ clients }: { clients: readonly ShownClient[] }) {
  if (clients.length === 0) return <span class="muted">no</span>
  return (
    <details class="inline">
      <summary>{amount(clients.length, 'client')}</summary>
      <ul>
        {clients.slice(0, 20).map(({ clientId, address, connectedAt }) => (
          <li key={clientId}>
            <span class="id">{clientId}</span>{' '}
            <small class="muted">
              {address}, <When at={connectedAt} />
            </small>
          </li>
        ))}
        {clients.length > 20 && <li class="muted">and {count(clients.length - 20)} more</li>}
      </ul>
    </details>
  )
}

function LastUsed({ credential, clients }: { credential: ShownCredential; clients: readonly ShownClient[] }) {
  if (clients.length > 0) return <>now</>
  return <When at={credential.lastUsedAt} />
}

function Revoke(props: { credential: ShownCredential; clients: readonly ShownClient[]; done: () => void }) {
  const { username, sessions } = props.credential
  return (
    <Action
      name="credentials.revoke"
      args={{ username }}
      label="Revoke"
      about={username}
      loss={
        <p>
          Whoever logs in as {username} is refused from now on.{' '}
          {amount(props.clients.length, 'connected client')} will be disconnected.{' '}
          {sessions > 0 &&
            `What waits for ${amount(sessions, 'session')} stays, for a credential with the same permissions.`}
        </p>
      }
      done={props.done}
    />
  )
}

/** The password, which is shown only once. */
function Password({ username, password, warning, replaces, revokeAt }: Issued) {
  return (
    <ShownOnce
      name="The new credential"
      title="The password is shown only now"
      done={() => {
        issued.value = undefined
      }}
    >
      <Secret label="Username" value={username} />
      <Secret label="Password" value={password} />
      {replaces && (
        <p>
          {replaces}{' '}
          {revokeAt ? (
            <>
              ends <When at={revokeAt} />.
            </>
          ) : (
            'goes on working until it is revoked.'
          )}
        </p>
      )}
      {warning && <p class="notice">{warning}</p>}
    </ShownOnce>
  )
}
