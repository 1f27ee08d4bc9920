import { type Signal, useSignal } from '@preact/signals'
import type { Result } from '../../../operations/operations.ts'
import type { ShownQueue } from '../../../operations/queues.ts'
import type { ListedSubscription } from '../../../operations/subscriptions.ts'
import { instantOf } from '../../page/instant.ts'
import { go } from '../../page/location.ts'
import { CommandButton } from '../parts/command.tsx'
import { type ActionResult, Said } from '../parts/dialog.tsx'
import { CommandForm, Moment, type Typed } from '../parts/form.tsx'
import { Badge, Contact, Facts, Head, Problem, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { Named, State } from '../parts/value.tsx'
import { type CommandAnswer, useCommandAnswer } from '../poll.ts'
import { amount, count, dateAndTime, ms } from '../words.ts'

const everyMs = 4_000

/** One webhook or plugin target, with its deliveries. */
export function WebhookPage({ name }: { name: string }) {
  const queues = useCommandAnswer('queues.list', {}, everyMs)
  const subscriptions = useCommandAnswer('subscriptions.list', {}, everyMs)
  const queue = queues.value.value?.find((one) => one.name === name)
  const subscription = subscriptions.value.value?.find((one) => one.name === name)
  return (
    <>
      <Head back={['/console/webhooks', 'Webhooks']} title={queue?.target ?? name}>
        {queue && <State of={queue.state} />}
      </Head>
      <Problem text={queues.problem.value ?? subscriptions.problem.value} />
      {queues.value.value && !queue && (
        <p class="nothing">There is no webhook or plugin target of this name.</p>
      )}
      {queue && subscriptions.value.value && <Shown key={name} queue={queue} subscription={subscription} />}
    </>
  )
}

function Shown(props: { queue: ShownQueue; subscription: ListedSubscription | undefined }) {
  const { queue, subscription } = props
  const { name, pending, deadLetters } = queue
  const shown = useCommandAnswer('subscriptions.show', subscription ? { name } : null, everyMs)
  const letters = useCommandAnswer('queues.dead-letters', { name }, everyMs)
  const users = useCommandAnswer('users.list')
  const attempts = useCommandAnswer('queues.attempts', { name }, everyMs)
  /** The outcome outlives its button, which a new answer of the node may remove. */
  const outcome = useSignal<ActionResult>(undefined)
  const { paused = null, disabled = null, since, createdBy } = shown.value.value ?? {}
  const maker = users.value.value?.find(({ userId }) => userId === createdBy)?.email ?? createdBy
  return (
    <>
      <section class="panel">
        <Facts
          of={[
            ['Name', <span class="id">{name}</span>],
            [
              'Whom to write to',
              subscription && <Contact address={queue.contact} subject={`Webhook ${queue.target}`} />,
            ],
            [
              'Livestream',
              subscription && (
                <Named
                  view="livestreams"
                  id={subscription.livestream.id}
                  name={subscription.livestream.title ?? subscription.livestream.id}
                />
              ),
            ],
            ['Others', others(shown.value.value?.livestreams)],
            ['Kinds', shown.value.value?.kinds?.join(', ')],
            ['Order', shown.value.value?.ordering === 'livestream' && 'of each livestream, side by side'],
            ['Types', shown.value.value?.types?.join(', ')],
            ['Institution', subscription && <Named view="institutions" id={subscription.institutionId} />],
            ['In this state since', since && <When at={since} />],
            [
              'Waiting',
              `${amount(pending, 'message')}${queue.aside > 0 ? `, ${count(queue.aside)} of them aside` : ''}`,
            ],
            ['Oldest', queue.oldest && <When at={queue.oldest} />],
            ['Dead letters', count(deadLetters)],
            ['Dropped', queue.dropped > 0 && amount(queue.dropped, 'message')],
            ['Passed over', queue.stale > 0 && amount(queue.stale, 'message')],
            ['Worth delivering', worthText(shown.value.value)],
            ['Failures in a row', queue.failures > 0 && count(queue.failures)],
            ['Next try', queue.nextTry && <When at={queue.nextTry} />],
            ['Last reason', queue.lastReason],
            ['Driver', queue.driver && driverText(queue.driver)],
            ['Paused', paused && `by ${paused.by}, ${dateAndTime(paused.at)}`],
            ['Disabled', disabled && `by ${disabled.by}: ${disabled.reason}, ${dateAndTime(disabled.at)}`],
            [
              'Made',
              subscription &&
                `${maker === undefined ? '' : `by ${maker}, `}${dateAndTime(subscription.createdAt)}`,
            ],
          ]}
        />
        <Problem text={shown.problem.value} />
        <Buttons {...{ queue, subscription, isPaused: paused !== null, outcome }} />
        <Said answer={outcome.value} />
      </section>
      {subscription && <ReplaySince name={name} />}
      <DeadLetters name={name} letters={letters} outcome={outcome} />
      <section class="panel">
        <h2>Last deliveries</h2>
        <Problem text={attempts.problem.value} />
        <Table
          caption="Last deliveries, newest first"
          rows={attempts.value.value}
          keyOf={({ messageId, time }) => `${messageId} ${time}`}
          empty="Nothing was tried yet."
          columns={[
            { title: 'Time', cell: ({ time }) => <When at={time} /> },
            {
              title: 'Answer',
              cell: ({ status, reason }) => (
                <Badge tone={reason === null ? 'good' : 'bad'}>{reason ?? `answered ${status}`}</Badge>
              ),
            },
            { title: 'Took', isNumber: true, cell: ({ duration }) => ms(duration) },
            {
              title: 'Message',
              cell: ({ messageId }) => <Named view="trace" id={messageId} class="id" />,
            },
          ]}
        />
      </section>
    </>
  )
}

/** The livestreams beside that of the topic. */
function others(livestreams: readonly string[] | null = null): string | undefined {
  return livestreams?.includes('*') ? 'all livestreams' : livestreams?.join(', ')
}

/** For how long an event is worth delivering, and when it is delivered. Undefined: as usual. */
function worthText(shown: Result<'subscriptions.show'> | undefined): string | undefined {
  const { maxAge = null, delay = 0 } = shown ?? {}
  const worth = maxAge === null ? '' : maxAge === 'element' ? 'until it is over' : `for ${maxAge} s`
  const late = delay > 0 ? `${delay / 1000} s after it was accepted` : ''
  return [worth, late].filter((text) => text !== '').join(', ') || undefined
}

function Buttons(props: {
  queue: ShownQueue
  subscription: ListedSubscription | undefined
  isPaused: boolean
  outcome: Signal<ActionResult>
}) {
  const { queue, subscription, isPaused, outcome } = props
  const { name, target, deadLetters } = queue
  const shared = { args: { name }, outcome }
  return (
    <div class="buttons">
      {deadLetters > 0 && (
        <CommandButton
          name="queues.replay"
          {...shared}
          label="Replay all dead letters"
          said={onceMore}
          isStrong
        />
      )}
      {subscription && (
        <>
          <CommandButton
            name="subscriptions.test"
            {...shared}
            label="Send a test message"
            said={({ delivered, delivery }) =>
              delivered
                ? `Acknowledged with ${delivery.status} after ${delivery.duration} ms.`
                : `Not acknowledged: ${delivery.reason}.`
            }
          />
          {isPaused ? (
            <CommandButton name="subscriptions.resume" {...shared} label="Resume" said={() => 'Resumed.'} />
          ) : (
            <CommandButton
              name="subscriptions.pause"
              {...shared}
              label="Pause"
              said={() => 'Paused: its events are collected.'}
            />
          )}
          <CommandButton
            name="subscriptions.remove"
            row={{ ...subscription, ...queue }}
            about={target ?? name}
            done={() => go('/console/webhooks')}
          />
        </>
      )}
    </div>
  )
}

function onceMore({ replayed }: { replayed: number }): string {
  return `Sending ${amount(replayed, 'message')} once more.`
}

function ReplaySince({ name }: { name: string }) {
  const since: Typed = useSignal({})
  const said = useSignal('')
  return (
    <details class="more-of">
      <summary>Replay all events since a time</summary>
      <CommandForm
        name="queues.replay"
        title="Replay since"
        label="Replay"
        typed={since}
        args={({ since: time = '' }) => ({ name, since: instantOf(time) })}
        done={(result) => {
          said.value = onceMore(result)
        }}
      >
        <Moment typed={since} name="since" label="Since" hint="Your local time" isRequired />
      </CommandForm>
      <p role="status">{said.value}</p>
    </details>
  )
}

function DeadLetters(props: {
  name: string
  letters: CommandAnswer<Result<'queues.dead-letters'>>
  outcome: Signal<ActionResult>
}) {
  const { name, letters, outcome } = props
  const rows = letters.value.value
  if (rows?.length === 0) return null
  return (
    <section class="panel">
      <h2>Dead letters</h2>
      <Problem text={letters.problem.value} />
      <Table
        caption="Dead letters"
        rows={rows}
        keyOf={({ messageId }) => messageId}
        textOf={({ messageId, reason }) => `${messageId} ${reason}`}
        empty=""
        columns={[
          { title: 'Given up', cell: ({ givenUpAt }) => <When at={givenUpAt} /> },
          { title: 'Why', cell: ({ reason }) => reason ?? '–' },
          { title: 'Tries', isNumber: true, cell: ({ tries }) => tries },
          {
            title: 'Message',
            cell: ({ messageId }) => <Named view="trace" id={messageId} class="id" />,
          },
          {
            title: 'Actions',
            isUntitled: true,
            cell: ({ messageId }) => (
              <CommandButton
                name="queues.replay"
                args={{ name, messageId }}
                label="Replay"
                about={messageId}
                said={onceMore}
                outcome={outcome}
              />
            ),
          },
        ]}
      />
    </section>
  )
}

/** The state of a driver, how often it ended, and why. */
function driverText({ state, ends, lastEnd }: NonNullable<ShownQueue['driver']>): string {
  return lastEnd
    ? `${state}, ended ${amount(ends, 'time')}, last at ${dateAndTime(lastEnd.at)}: ${lastEnd.reason}`
    : state
}
