import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ImportReport as StoredImportReport } from '../../../admin/aedes-redis/report.ts'
import { operations as all } from '../../../admin/operations/operations.ts'
import type { ClientView, SessionView } from '../../../broker/operators-view.ts'
import type {
  Attempt as StoredAttempt,
  DeadLetter as StoredDeadLetter,
} from '../../../delivery/queue/work-item.ts'
import type { ShownQueue } from '../../../delivery/queue-list.ts'
import type { EventRow as StoredEventRow } from '../../../journal/history/event-row.ts'
import type { EventStages } from '../../../telemetry/latency.ts'
import type { TrendSample as NodeTrendSample } from '../../../telemetry/trend.ts'
import type { Livestream as FeedLivestream } from '../../../validator/feed/feed.ts'
import type {
  FeedDiff as NodeFeedDiff,
  FeedStatus as NodeFeedStatus,
} from '../../../validator/feed/feed-source.ts'
import type {
  Attempt,
  Client,
  DeadLetter,
  EventRow,
  FeedDiff,
  FeedStatus,
  ImportReport,
  Livestream,
  Queue,
  Session,
  Stages,
  TrendSample,
} from '../../../web/console/answers.ts'
import { operations } from '../../../web/console/operations.ts'
import { root } from '../../root.ts'

/*
 * Everything that an operator can do with `hubctl` can be done in the console.
 */
const folder = join(root, 'web/console')
const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path) && path !== 'operations.ts' && path !== 'answers.ts')
  .map((path) => readFileSync(join(folder, path), 'utf8'))

t.test('the console has every command, and asks before each that takes something away', async (t) => {
  t.same(Object.keys(operations).sort(), Object.keys(all).sort())
  for (const [name, operation] of Object.entries(operations)) {
    t.equal('loses' in operation, Reflect.get(all, name).effect === 'loss', `${name} takes something away`)
  }
})

t.test('every command of the table is asked by a view', async (t) => {
  for (const name of Object.keys(operations)) {
    const isAsked = sources.some((source) =>
      [`name="${name}"`, `useCommandAnswer('${name}'`, `operate('${name}'`].some((use) =>
        source.replace(/\(\s+/g, '(').includes(use),
      ),
    )
    t.ok(isAsked, name)
  }
})

/*
 * Each line of `Held` compares a type of the console with the type of a node's answer. If the console expects something
 * else, the line is a type error. The console itself cannot import the types of those answers: they need the types of
 * Node.js, which the type check of the console lacks.
 */
type Fits<Shown, Answered extends Shown> = Answered
export type Held = [
  Fits<Client, ClientView>,
  Fits<Session, SessionView>,
  Fits<Omit<EventRow, 'errors'>, StoredEventRow>,
  Fits<TrendSample, NodeTrendSample>,
  Fits<FeedStatus, NodeFeedStatus>,
  Fits<FeedDiff, NodeFeedDiff>,
  Fits<Livestream, FeedLivestream>,
  Fits<Queue, ShownQueue>,
  Fits<Attempt, StoredAttempt>,
  Fits<DeadLetter, StoredDeadLetter>,
  Fits<Stages, EventStages>,
  Fits<ImportReport, StoredImportReport & { dryRun: boolean }>,
]
