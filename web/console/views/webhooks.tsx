import { useSignal } from '@preact/signals'
import type { ShownQueue } from '../../../operations/queues.ts'
import type { ListedSubscription } from '../../../operations/subscriptions.ts'
import { needsAttention } from '../attention.ts'
import { livestreamName } from '../livestream-names.ts'
import { Contact, Head, Problem, When } from '../parts/shown.tsx'
import { SomeOrAll } from '../parts/some-or-all.tsx'
import { Table } from '../parts/table.tsx'
import { Named, State } from '../parts/value.tsx'
import { useCommandAnswer } from '../poll.ts'
import { amount, count } from '../words.ts'

/** A queue, and the subscription of its webhook. Undefined: a plugin target, or the subscriptions are not read yet. */
type Target = ShownQueue & { subscription: ListedSubscription | undefined }

const everyMs = 5_000

/** Webhooks and plugin targets: at first only those that need attention, if there are any. */
export function Webhooks() {
  const queues = useCommandAnswer('queues.list', {}, everyMs)
  const subscriptions = useCommandAnswer('subscriptions.list', {}, 2 * everyMs)
  const isAll = useSignal(false)
  const byName = new Map((subscriptions.value.value ?? []).map((one) => [one.name, one]))
  const all = queues.value.value?.map((queue): Target => ({ ...queue, subscription: byName.get(queue.name) }))
  const failing = all?.filter(needsAttention)
  const isShownAll = isAll.value || failing?.length === 0
  return (
    <>
      <Head title="Webhooks">
        {failing && (
          <p class={failing.length > 0 ? 'summary bad' : 'summary good'} role="status">
            {failing.length === 0
              ? 'All are well.'
              : `${amount(failing.length, 'target')} of ${all?.length} ${failing.length === 1 ? 'needs' : 'need'} attention.`}
          </p>
        )}
      </Head>
      <Problem text={queues.problem.value ?? subscriptions.problem.value} />
      <section class="panel">
        <Table
          caption="Webhooks and plugin targets"
          rows={sorted(isShownAll ? all : failing)}
          keyOf={({ name }) => name}
          textOf={textOf}
          empty="No webhook is subscribed, and no plugin target is configured."
          toneOf={(target) => (needsAttention(target) ? 'attention' : undefined)}
          tools={
            all &&
            failing &&
            failing.length > 0 && (
              <SomeOrAll isAll={isAll} name="Needs attention" some={failing.length} all={all.length} />
            )
          }
          columns={[
            { title: 'State', cell: ({ state }) => <State of={state} /> },
            {
              title: 'Target',
              cell: ({ name, target, subscription }) => (
                <>
                  <Named view="webhooks" id={name} name={target ?? name} class="what" />
                  <small class="below" dir="auto">
                    {subscription
                      ? (subscription.livestream.title ?? livestreamName(subscription.livestream.id))
                      : 'plugin target'}
                  </small>
                </>
              ),
            },
            {
              title: 'Whom to write to',
              cell: ({ contact, target, subscription }) =>
                subscription ? (
                  <Contact address={contact} subject={`Webhook ${target}`} />
                ) : (
                  <span class="muted">–</span>
                ),
            },
            { title: 'Waiting', isNumber: true, cell: ({ pending }) => count(pending) },
            { title: 'Oldest', cell: ({ oldest }) => <When at={oldest} /> },
            { title: 'Dead letters', isNumber: true, cell: ({ deadLetters }) => count(deadLetters) },
            { title: 'Last reason', cell: ({ lastReason }) => lastReason ?? '–' },
          ]}
        />
      </section>
    </>
  )
}

function sorted(targets: readonly Target[] | undefined): Target[] | undefined {
  return targets?.toSorted(
    (a, b) =>
      Number(needsAttention(b)) - Number(needsAttention(a)) ||
      b.deadLetters - a.deadLetters ||
      b.pending - a.pending,
  )
}

function textOf({ name, target, contact, state, lastReason, subscription }: Target): string {
  const { livestream, institutionId } = subscription ?? {}
  return [name, target, contact, state, lastReason, livestream?.title, livestream?.id, institutionId].join(
    ' ',
  )
}
