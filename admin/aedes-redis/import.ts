import { type Credential, principalOf } from '../../acl/credential.ts'
import type { Principal } from '../../acl/principal.ts'
import type { ForeignSession, ImportedSessions } from '../../broker/imported-sessions.ts'
import { isRecord } from '../../event/json.ts'
import { filterMatches } from '../../event/topic.ts'
import { createEventImport } from './events.ts'
import { LeftOut } from './left-out.ts'
import type { createReport, ReportPart } from './report.ts'
import type { createSessionCredentials } from './session-credentials.ts'
import { type AedesSource, endedBy } from './source.ts'

type Filter = ForeignSession['filters'][number]

/** The parts of a running import. */
export interface Importing {
  source: AedesSource
  sessionCredentials: ReturnType<typeof createSessionCredentials>
  report: ReturnType<typeof createReport>
  /** Whether this is a dry run, which changes nothing and has the same report. */
  isDry: boolean
  /** Aborting ends the import before the next retained event, session or waiting message. */
  signal: AbortSignal
}

/**
 * Imports what an Aedes broker stored in Redis: retained events, then sessions with their waiting control states. The
 * import can be repeated.
 */
export async function importFromAedes(
  importing: Importing,
  parts: { sessions: ImportedSessions } & Omit<Parameters<typeof createEventImport>[0], 'isDry'>,
): Promise<void> {
  const { source, sessionCredentials, report, isDry, signal } = importing
  const events = createEventImport({ ...parts, isDry })
  /** How many sessions a dry run would have made, by user name. */
  const foreseen = new Map<string, number>()

  // Two passes: several topics may retain events of one slot, and only the newest is imported.
  await forEachRetained((_, payload) => {
    if (!(payload instanceof LeftOut)) events.look(payload)
  })
  await forEachRetained((topic, payload) =>
    counted(report.retained, topic, async () => {
      if (payload instanceof LeftOut) throw payload
      const became = await events.take(payload)
      if (became === 'here') throw new LeftOut('already-here', 'the hub has one of the same event time')
    }),
  )
  for await (const clientIds of source.clientIds()) {
    for (const clientId of clientIds) {
      checkGoingOn(signal)
      await counted(report.sessions, clientId, () => takeSession(clientId))
    }
  }

  async function forEachRetained(work: (topic: string, payload: Buffer | LeftOut) => Promise<void> | void) {
    for await (const page of source.retained()) {
      for (const { topic, payload } of page) {
        checkGoingOn(signal)
        await work(topic, payload)
      }
    }
  }

  async function takeSession(clientId: string): Promise<void> {
    const owner: Credential | { why: string } = sessionCredentials.of(clientId)
    if ('why' in owner) throw new LeftOut('no-credential', owner.why)
    const principal: Principal | undefined = principalOf(owner)
    if (!principal)
      throw new LeftOut('no-credential', `${JSON.stringify(owner.username)} reads over HTTPS only`)
    const { username } = principal
    const session = { clientId, principal, filters: await filtersOf(clientId) }
    const admission = parts.sessions.judge(session, foreseen.get(username) ?? 0)
    const denials = admission.denials ?? []
    for (const { filter, reason } of denials) {
      report.filters.leftOut(`${clientId}: ${filter}`, new LeftOut('not-permitted', reason))
    }
    if ('reason' in admission) throw new LeftOut(admission.reason, admission.why)
    const { granted } = admission
    await takeQueue(clientId, granted)
    if (isDry) foreseen.set(username, (foreseen.get(username) ?? 0) + 1)
    else if (!(await parts.sessions.bring({ ...session, filters: granted }))) {
      throw new LeftOut('exists', 'its client has come to the hub during the import')
    }
    for (const _ of granted) report.filters.cameOver()
  }

  async function filtersOf(clientId: string): Promise<Filter[]> {
    return (await source.filtersOf(clientId)).flatMap((stored) => {
      const { topic, qos } = isRecord(stored) ? stored : {}
      if (typeof topic === 'string' && (qos === 0 || qos === 1 || qos === 2)) return [[topic, qos] as const]
      report.filters.leftOut(clientId, new LeftOut('unreadable', 'it is no filter'))
      return []
    })
  }

  /**
   * Imports the control states that wait for a session. The caller stores the session only after this. A repeated
   * import skips stored sessions, with all that still waits for them.
   */
  async function takeQueue(clientId: string, filters: readonly Filter[]): Promise<void> {
    const isWanted = (topic: string) =>
      filters.some(([filter, qos]) => qos > 0 && filterMatches(filter, topic))
    for await (const payload of source.queueOf(clientId)) {
      checkGoingOn(signal)
      await counted(report.queued, clientId, async () => {
        if (payload instanceof LeftOut) throw payload
        await events.take(payload, { isControl: true, topic: isWanted })
      })
    }
  }
}

function checkGoingOn({ aborted }: AbortSignal): void {
  if (aborted) throw endedBy('nobody waits for the report any more')
}

async function counted(part: ReportPart, of: string, take: () => Promise<void>): Promise<void> {
  try {
    await take()
    part.cameOver()
  } catch (error) {
    if (!(error instanceof LeftOut)) throw error
    part.leftOut(of, error)
  }
}
