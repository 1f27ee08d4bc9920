import { useSignal } from '@preact/signals'
import type { ImportReport } from '../../../operations/imports.ts'
import { nodeState } from '../node-state.ts'
import { Action, type Outcome, Said } from '../parts/action.tsx'
import { CommandForm, Field, Lines, Tick } from '../parts/form.tsx'
import { Badge, Head, Problem, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { amount, count, dateAndTime } from '../words.ts'

/** The node itself: its store, the keys that sign tokens, its settings and counters. */
export function NodePage() {
  return (
    <>
      <Head title="Node">{nodeState.value && <p class="muted">{nodeState.value.node}</p>}</Head>
      <Store />
      <Keys />
      <FromAedes />
      <Settings />
      <Counters />
    </>
  )
}

function Store() {
  const store = nodeState.value?.store
  const outcome = useSignal<Outcome>(undefined)
  if (!store) return null
  return (
    <section class="panel">
      <h2>
        Store <Badge tone={store.ok ? 'good' : 'bad'}>{store.ok ? 'well' : 'not well'}</Badge>
      </h2>
      <p>{store.problem ?? `The ${store.driver} store takes what it is given.`}</p>
      {store.isReplaced && (
        <Action
          name="store.accept"
          label="Go on with the empty store"
          loss={
            <p>
              A damaged store was replaced by an empty one. Credentials, users, sessions and webhooks that are
              not in the empty one are given up; the damaged files stay where they were moved to.
            </p>
          }
          said={({ movedTo }) => `The hub goes on. The damaged store is in ${movedTo}.`}
          outcome={outcome}
        />
      )}
      <Said answer={outcome.value} />
    </section>
  )
}

function Keys() {
  const { value, problem, refresh } = useCommandAnswer('keys.list', {}, 30_000)
  const typed = useSignal<Readonly<Record<string, string>>>({})
  const dropOld = typed.value.dropOld === 'yes'
  return (
    <section class="panel">
      <h2>Keys that sign tokens</h2>
      <Problem text={problem.value} />
      <Table
        caption="Signing keys"
        rows={value.value}
        keyOf={({ kid }) => kid}
        empty="There is no key."
        columns={[
          { title: 'Key', cell: ({ kid }) => <span class="id">{kid}</span> },
          { title: 'Made', cell: ({ createdAt }) => <When at={createdAt} /> },
          {
            title: 'State',
            cell: ({ state, signsFrom, replacedAt }) => {
              if (state === 'signing') return <Badge tone="good">signs</Badge>
              const isWaiting = state === 'waiting'
              return (
                <>
                  {isWaiting ? 'signs' : 'replaced'} <When at={isWaiting ? signsFrom : replacedAt} />
                </>
              )
            },
          },
        ]}
      />
      <div class="buttons">
        <Action
          name="keys.rotate"
          args={{ dropOld }}
          label="Make a new key"
          loss={
            <p>
              {dropOld
                ? 'The new key signs at once, and everything that the old keys signed is refused: all users log in again, you as well. Receivers of webhooks may refuse pushes until they read the new key.'
                : 'Receivers can read the new key at once. It signs when they have had the time to (HUB_KEY_LEAD). What the old key signed stays valid until it expires.'}
            </p>
          }
          said={({ kid, signsFrom, dropOld, mayRefuse }) =>
            dropOld
              ? `${kid} signs from now on. ${amount(mayRefuse.length, 'receiver')} may refuse pushes until they read it.`
              : `${kid} signs from ${dateAndTime(signsFrom)} on.`
          }
          done={refresh}
        />
        <Tick typed={typed} name="dropOld" label="Refuse at once what the old ones signed" />
      </div>
    </section>
  )
}

/** An Aedes broker may have a hundred thousand sessions. */
const importPatienceMs = 10 * 60 * 1000

/** Imports the data of an Aedes broker in Redis. */
function FromAedes() {
  const typed = useSignal<Readonly<Record<string, string>>>({ dryRun: 'yes' })
  const report = useSignal<ImportReport | undefined>(undefined)
  return (
    <>
      <CommandForm
        name="import.aedes-redis"
        title="From an Aedes broker on Redis"
        label="Import"
        patienceMs={importPatienceMs}
        typed={typed}
        args={({ url = '', users = '', dryRun }) => ({
          ...{ url: url.trim(), dryRun: dryRun === 'yes' },
          users: users.split('\n').filter((line) => line.trim() !== ''),
        })}
        done={(result) => {
          report.value = result
        }}
      >
        <Field typed={typed} name="url" label="URL of its Redis" placeholder="redis://…" isRequired />
        <Lines typed={typed} name="users" label="Whose sessions: client id, user name" />
        <Tick typed={typed} name="dryRun" label="Change nothing, only report" />
      </CommandForm>
      {report.value && <Imported report={report.value} />}
    </>
  )
}

const imported = [
  ['retained', 'Retained events'],
  ['sessions', 'Sessions'],
  ['filters', 'Filters of these sessions'],
  ['queued', 'Control states that wait for them'],
] as const

function Imported({ report }: { report: ImportReport }) {
  return (
    <section class="panel" role="status" aria-label="What came over">
      <Table
        caption={report.dryRun ? 'What would come over' : 'What came over'}
        rows={imported.map(([name, what]) => ({ what, ...report[name] }))}
        keyOf={({ what }) => what}
        empty="Nothing."
        columns={[
          { title: 'What', cell: ({ what }) => what },
          { title: 'Found', isNumber: true, cell: ({ found }) => count(found) },
          { title: 'Came over', isNumber: true, cell: ({ cameOver }) => count(cameOver) },
          {
            title: 'Left out',
            cell: ({ leftOut }) =>
              leftOut.map((one) => `${count(one.count)} ${one.reason} (${one.examples[0]?.of})`).join(', '),
          },
        ]}
      />
    </section>
  )
}

function Settings() {
  const { value, problem } = useCommandAnswer('config')
  const rows = value.value && Object.entries(value.value)
  return (
    <section class="panel">
      <h2>Settings</h2>
      <Problem text={problem.value} />
      <Table
        caption="Settings in effect, secrets masked"
        rows={rows}
        keyOf={([name]) => name}
        textOf={([name, value]) => `${name} ${JSON.stringify(value)}`}
        empty="None."
        columns={[
          { title: 'Name', cell: ([name]) => <span class="id">{name}</span> },
          {
            title: 'Value',
            cell: ([, value]) => (
              <span class="id">{typeof value === 'string' ? value : JSON.stringify(value)}</span>
            ),
          },
        ]}
      />
    </section>
  )
}

function Counters() {
  const rows = nodeState.value && Object.entries(nodeState.value.counters)
  return (
    <section class="panel">
      <h2>Counters since the start</h2>
      <Table
        caption="Counters since the start"
        rows={rows}
        keyOf={([name]) => name}
        textOf={([name]) => name}
        empty="None."
        columns={[
          { title: 'Name', cell: ([name]) => <span class="id">{name}</span> },
          { title: 'Value', isNumber: true, cell: ([, value]) => count(Math.round(value * 100) / 100) },
        ]}
      />
    </section>
  )
}
