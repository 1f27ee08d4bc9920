import type { ComponentChildren } from 'preact'
import type { Status, TrendSample } from '../../../operations/node.ts'
import type { ShownQueue } from '../../../operations/queues.ts'
import { needsAttention } from '../attention.ts'
import { nodeState, rateOf, stateProblem } from '../node-state.ts'
import { isReached } from '../operate.ts'
import { Chart } from '../parts/chart.tsx'
import { Badge, Head, Problem, type Tone, When } from '../parts/shown.tsx'
import { useCommandAnswer } from '../poll.ts'
import { SlowEvents } from '../trace/slow-events.tsx'
import { amount, budgetMs, bytes, count, dateAndTime, durationOf, ms, rate } from '../words.ts'

const trendEveryMs = 10_000
/** The node keeps samples of this time, and none of before it started. */
const trendSeconds = 3_600
/** Number of events whose times the node keeps to compute its percentiles. */
const budgetWindow = 4_096
/** What became of events. Dry runs and events that only made a topic are counted apart: nobody published or was refused. */
const outcomes = [
  ['published', 'Published', '--good'],
  ['blocked', 'Blocked', '--warn'],
  ['invalid', 'Invalid', '--accent'],
  ['failed', 'Failed', '--bad'],
] as const

/** Shows whether the node is well, and charts of its last hour. */
export function Overview() {
  const trend = useCommandAnswer('trend', {}, trendEveryMs)
  const queues = useCommandAnswer('queues.list', {}, trendEveryMs)
  const status = nodeState.value
  const samples = trend.value.value?.samples ?? []
  return (
    <>
      <Head title="Overview">
        {status && (
          <p class="muted">
            {status.node} · up {durationOf(status.uptime)} · {bytes(status.memory.rss)}
          </p>
        )}
      </Head>
      <Problem text={stateProblem.value} />
      {status ? (
        <Tiles status={status} samples={samples} queues={queues.value.value} />
      ) : (
        <p class="loading">Loading…</p>
      )}
      <Problem text={trend.problem.value} />
      {samples.length > 0 ? (
        <Charts samples={samples} />
      ) : (
        trend.value.value && (
          <p class="panel muted">Charts appear as soon as the node has run for 10 seconds.</p>
        )
      )}
      <SlowEvents />
    </>
  )
}

function Tiles({
  status,
  samples,
  queues,
}: {
  status: Status
  samples: readonly TrendSample[]
  queues: readonly ShownQueue[] | undefined
}) {
  const { budget, store, feed, certificate, connections } = status
  const exceeded = samples.reduce((sum, sample) => sum + sample.exceeded, 0)
  const total = samples.reduce((sum, { events }) => sum + (events.published ?? 0), 0)
  const isKept = budget.p99 <= budgetMs
  // Before the second answer of the node, the trend gives the rates.
  const last = samples.at(-1)
  const published = rateOf('hub_events_total{outcome=published}') ?? perSecond(last, last?.events.published)
  const refused = outcomes
    .slice(1)
    .map(([outcome]) => rateOf(`hub_events_total{outcome=${outcome}}`) ?? 0)
    .reduce((sum, one) => sum + one)
  const deliveries = rateOf('hub_deliveries_total') ?? perSecond(last, last?.deliveries)
  return (
    <ul class="tiles" data-stale={isReached.value === false}>
      <Tile
        title={`Budget ${budgetMs} ms`}
        tone={budget.count === 0 ? 'plain' : isKept ? 'good' : 'bad'}
        state={budget.count === 0 ? 'No event yet' : isKept ? 'Kept' : 'Exceeded'}
        value={budget.count === 0 ? '–' : ms(budget.p99)}
        unit="p99"
      >
        of the newest {amount(Math.min(budget.count, budgetWindow), 'event')}, p50 {ms(budget.p50)};{' '}
        {status.uptime < trendSeconds ? 'since the start' : 'in the last hour'}{' '}
        {exceeded === 0 ? 'none' : count(exceeded)} of {amount(total, 'event')} over it
      </Tile>
      <Tile title="Events" value={published === undefined ? '–' : rate(published)} unit="published/s">
        {refused > 0 && `${rate(refused)}/s refused · `}
        since the start {count(eventsOf(status, outcomes))},{' '}
        <a href="/console/trace?outcome=refused">
          {count(eventsOf(status, outcomes.slice(1)))} not published
        </a>
      </Tile>
      <Tile title="Deliveries" value={deliveries === undefined ? '–' : rate(deliveries)} unit="written/s">
        {count(status.counters.hub_deliveries_total ?? 0)} since the start
      </Tile>
      <Webhooks queues={queues} />
      <Tile title="Connections" value={count(connections)} unit="MQTT">
        <a href="/console/clients">who is connected</a>
      </Tile>
      <Tile
        title="Store"
        tone={store.ok ? 'good' : 'bad'}
        state={store.ok ? 'OK' : 'Not OK'}
        value={store.driver}
      >
        {store.problem ?? 'accepts what is written'}
      </Tile>
      <Tile
        title="Feed"
        tone={feed.ok ? 'good' : 'bad'}
        state={feed.ok ? 'OK' : 'Not OK'}
        value={count(feed.items)}
        unit="livestreams"
      >
        {feed.problem ?? (
          <>
            checked <When at={feed.checkedAt} />
          </>
        )}
      </Tile>
      <Tile
        title="Certificate"
        tone={certificate.expiryDays > 21 ? 'good' : certificate.expiryDays > 7 ? 'warn' : 'bad'}
        state={certificate.expiryDays > 21 ? 'Valid' : 'Renew it'}
        value={count(certificate.expiryDays)}
        unit="days left"
      >
        until {dateAndTime(certificate.notAfter)}
      </Tile>
    </ul>
  )
}

function Webhooks({ queues }: { queues: readonly ShownQueue[] | undefined }) {
  const failing = queues?.filter(needsAttention).length ?? 0
  const tone = queues === undefined || queues.length === 0 ? 'plain' : failing === 0 ? 'good' : 'bad'
  return (
    <Tile
      title="Webhooks"
      tone={tone}
      {...(tone !== 'plain' && { state: failing === 0 ? 'OK' : 'Failing' })}
      value={queues ? count(failing) : '–'}
      unit={queues ? `of ${count(queues.length)} need attention` : ''}
    >
      <a href="/console/webhooks">{failing === 0 ? 'all of them' : 'which ones, and whom to write to'}</a>
    </Tile>
  )
}

function perSecond(sample: TrendSample | undefined, amount = 0): number | undefined {
  return sample && amount / Math.max(sample.seconds, 1)
}

function Tile(props: {
  title: string
  value: string
  unit?: string
  tone?: Tone
  state?: string
  children: ComponentChildren
}) {
  return (
    <li class={`tile ${props.tone ?? 'plain'}`}>
      <h2>
        {props.title}
        {props.state && <Badge tone={props.tone ?? 'plain'}>{props.state}</Badge>}
      </h2>
      <p class="figure">
        <strong>{props.value}</strong>
        {props.unit && <span>{props.unit}</span>}
      </p>
      <p class="note">{props.children}</p>
    </li>
  )
}

function Charts({ samples }: { samples: readonly TrendSample[] }) {
  const times = samples.map(({ at }) => Date.parse(at) / 1000)
  const ratesOf = (of: (sample: TrendSample) => number) =>
    samples.map((sample) => perSecond(sample, of(sample)) ?? 0)
  const events = ratesOf(({ events }) => outcomes.reduce((sum, [outcome]) => sum + (events[outcome] ?? 0), 0))
  const deliveries = ratesOf((sample) => sample.deliveries)
  const worst = Math.max(0, ...samples.map(({ p99 }) => p99 ?? 0))
  const span = durationOf(samples.reduce((sum, { seconds }) => sum + seconds, 0))
  return (
    <div class="charts">
      <Chart
        title="Time to the last subscriber"
        summary={`Worst p99 of 10 seconds: ${ms(worst)}, the line is the budget of ${budgetMs} ms.`}
        times={times}
        series={[
          { name: 'p99', color: '--accent', values: samples.map(({ p99 }) => p99) },
          { name: 'p50', color: '--good', values: samples.map(({ p50 }) => p50) },
        ]}
        words={ms}
        limit={budgetMs}
      />
      <Chart
        title="Events per second"
        summary={`At most ${rate(Math.max(...events))}/s in the last ${span}.`}
        times={times}
        series={outcomes.map(([outcome, name, color]) => ({
          name,
          color,
          isFilled: outcome === 'published',
          values: ratesOf(({ events }) => events[outcome] ?? 0),
        }))}
        words={rate}
      />
      <Chart
        title="Deliveries per second"
        summary={`At most ${rate(Math.max(...deliveries))}/s in the last ${span}.`}
        times={times}
        series={[{ name: 'Written', color: '--accent', values: deliveries, isFilled: true }]}
        words={rate}
      />
      <Chart
        title="Connections"
        summary={`Now ${count(samples.at(-1)?.connections ?? 0)}, at most ${count(Math.max(...samples.map(({ connections }) => connections)))}.`}
        times={times}
        series={[
          {
            name: 'MQTT',
            color: '--accent',
            values: samples.map(({ connections }) => connections),
            isFilled: true,
          },
        ]}
        words={rate}
      />
    </div>
  )
}

function eventsOf({ counters }: Status, of: readonly (typeof outcomes)[number][]): number {
  return of.reduce((sum, [outcome]) => sum + (counters[`hub_events_total{outcome=${outcome}}`] ?? 0), 0)
}
