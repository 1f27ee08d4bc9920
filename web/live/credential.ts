import type { NoLogin, ReaderLogin } from '../../client/keep-subscribed.ts'
import { type HubAnswer, problemOf } from '../page/ask.ts'
import { now } from '../page/clock.ts'
import { askAsReader, user } from '../page/session.ts'
import { inStorage } from '../page/storage.ts'

/** A kept credential must be valid for at least this time, milliseconds. */
const leastMs = 5 * 60 * 1000
/** Key in `sessionStorage`. A tab keeps its credential over reloads: the number of credentials per user is limited. */
const storageKey = 'hub-mqtt'

/** The credential with which this page logs in to MQTT, for an hour: that of this tab, or a new one. `isFresh`: a new one in any case. */
export async function takeCredential(isFresh: boolean): Promise<ReaderLogin | NoLogin> {
  const kept = isFresh ? undefined : keptCredential()
  if (kept) return kept
  const answer = await askAsReader('POST', '/auth/mqtt')
  const { username, password, expiresAt } = answer.body
  if (answer.status !== 200 || typeof username !== 'string' || typeof password !== 'string') {
    const isRefused = answer.status === 401 || answer.status === 403
    return { isRefused, reason: whyNone(answer), retryAfter: answer.retryAfter }
  }
  const credential = { username, password, expiresAt: Date.parse(String(expiresAt)) }
  inStorage(() => sessionStorage.setItem(storageKey, JSON.stringify({ ...credential, of: holder() })))
  return credential
}

function whyNone(answer: HubAnswer): string {
  const { status, retryAfter } = answer
  if (status !== 429 || retryAfter === undefined) return problemOf(answer)
  const wait = retryAfter < 60 ? `${retryAfter} s` : `${Math.ceil(retryAfter / 60)} min`
  return `Too many pages were opened. The hub lets the next one in after ${wait}.`
}

/** Forgets the credential of this tab, because it was refused or has expired. */
export function forgetCredential(): void {
  inStorage(() => sessionStorage.removeItem(storageKey))
}

function keptCredential(): ReaderLogin | undefined {
  const kept = inStorage(() => JSON.parse(sessionStorage.getItem(storageKey) ?? 'null'))
  return kept?.of === holder() && kept.expiresAt - now() > leastMs ? kept : undefined
}

/** The user whose credential is kept. Another user may have other permissions. */
function holder(): string {
  return user.value?.email ?? ''
}
