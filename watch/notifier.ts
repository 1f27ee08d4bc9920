import { setTimeout as delay } from 'node:timers/promises'
import { type Check, checkOf, type ErrorItem } from '../event/error.ts'
import { namedKeys, storeKeys } from '../store/keys.ts'
import { type Change, ConditionFailed, type Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import { afterTelling, dueOf, type Noticed, type Refused, toldTo } from './notices.ts'

/** Time between two looks for what contacts are to be told, milliseconds. */
const lookMs = 10_000
/** A mail server that does not answer holds up at most so many mails for 20 s. */
const mailsAtOnce = 5
/** At the end of the node, a mail that is under way is waited for as long as this, milliseconds. */
const mailMs = 2_000
/** After a mail that the mail server did not take, the next one for the institution; milliseconds. */
const againMs = 15 * 60_000
/** What is wrong then is not the institution's to mend. */
const checksOfHub: ReadonlySet<Check | undefined> = new Set(['feed', 'storing', 'topic of the livestream'])

const { keyOf } = namedKeys(storeKeys.institutionTold)

/** Where to mail. `condition` holds in the store while mails may go there. */
interface Recipient {
  email: string
  unsubscribe: string
  /** When the contact was set, ISO 8601. */
  setAt: string
  condition: Change
}

/**
 * Tells the contacts of institutions what is noticed (open.md §7). The leader looks. Before a mail goes out, one commit
 * stores what it tells, on the condition that nobody else has told it: two nodes, or a crash, never tell twice. A crash
 * between that commit and the mail loses the mail.
 */
export function createNotifier(parts: {
  store: Pick<Store, 'get' | 'commit'>
  /** Institutions whose contact gets mails. */
  confirmed: () => string[]
  recipient: (institutionId: string) => Recipient | undefined
  /** What is silent or in a loop now, by institution. */
  noticed: () => ReadonlyMap<string, Omit<Noticed, 'refusals'>>
  /** Mails. Resolves with `notTaken` if the mail was certainly not sent. Rejects if it may have been. */
  send: (
    institutionId: string,
    noticed: Noticed,
    to: Pick<Recipient, 'email' | 'unsubscribe'>,
  ) => Promise<'sent' | { notTaken: unknown }>
  isLeader: () => boolean
  clock: () => number
  log: Log
}) {
  const { store, confirmed, recipient, noticed, send, isLeader, clock, log } = parts
  /** By institution and the code of an error: refused events of which the contact was not told. */
  const refusals = new Map<string, Map<string, Refused>>()
  /** By institution: no mail before this time, milliseconds since the epoch. */
  const pauses = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> = Promise.resolve()

  return {
    start(): void {
      timer = setInterval(() => void look(), lookMs).unref()
    },

    /** Notes the errors of a refused event. */
    refused(institutionId: string, errors: readonly ErrorItem[]): void {
      if (!recipient(institutionId)) return
      const first = new Map(errors.map((error) => [error.errorCode, error]))
      for (const [errorCode, { path, message }] of first) {
        if (checksOfHub.has(checkOf(errorCode))) continue
        note(institutionId, [{ errorCode, events: 1, path, message }])
      }
    },

    /** Tells contacts what is due, as the timer does. Never rejects. */
    look,

    /** Waits for a mail that is under way. */
    async close(): Promise<void> {
      clearInterval(timer)
      await Promise.race([looking, delay(mailMs, undefined, { ref: false })])
    },
  }

  function look(): Promise<void> {
    looking = looking.then(async () => {
      for (const institutionId of refusals.keys())
        if (!isLeader() || !recipient(institutionId)) refusals.delete(institutionId)
      if (!isLeader()) return
      const now = noticed()
      const institutions = confirmed().values()
      await Promise.all(
        Array.from({ length: mailsAtOnce }, async () => {
          for (const institutionId of institutions) await tellIfDue(institutionId, now.get(institutionId))
        }),
      )
    })
    return looking
  }

  async function tellIfDue(institutionId: string, now: Omit<Noticed, 'refusals'> | undefined): Promise<void> {
    const { silent = [], loops = [] } = now ?? {}
    const refused = [...(refusals.get(institutionId)?.values() ?? [])]
    if (silent.length + loops.length + refused.length === 0) return
    if (clock() < (pauses.get(institutionId) ?? 0)) return
    await tell(institutionId, { silent, loops, refusals: refused }).catch((err: unknown) =>
      log.error({ err, institution: institutionId }, 'contact of an institution not mailed'),
    )
  }

  async function tell(institutionId: string, now: Noticed): Promise<void> {
    const key = keyOf(institutionId)
    const value = await store.get(key)
    const found = recipient(institutionId)
    if (!found) return
    const { condition, setAt, ...to } = found
    const told = toldTo(setAt, value && JSON.parse(value.toString()))
    const due = dueOf(now, told, clock())
    if (!due) return
    const after = JSON.stringify(afterTelling(due, told, clock()))
    try {
      await store.commit([{ put: key, value: after, when: value ? { value } : 'absent' }, condition])
    } catch (error) {
      // Another node tells it, or the contact has changed.
      if (error instanceof ConditionFailed) return
      throw error
    }
    for (const { errorCode } of due.refusals) refusals.get(institutionId)?.delete(errorCode)
    const sent = await send(institutionId, due, to)
    if (sent === 'sent') {
      log.info({ institution: institutionId }, 'contact of an institution mailed')
      return
    }
    pauses.set(institutionId, clock() + againMs)
    note(institutionId, due.refusals)
    const before = value ? { put: key, value } : { del: key }
    await store.commit([{ ...before, when: { value: after } }])
    throw sent.notTaken
  }

  function note(institutionId: string, refused: readonly Refused[]): void {
    const known = refusals.get(institutionId) ?? new Map<string, Refused>()
    refusals.set(institutionId, known)
    for (const one of refused)
      known.set(one.errorCode, { ...one, events: one.events + (known.get(one.errorCode)?.events ?? 0) })
  }
}
