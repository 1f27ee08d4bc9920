import { outOfOrder, type Sent } from './judge.ts'
import type { Attempt } from './webhooks.ts'

/*
 * Judges webhooks by what their receiver saw: order, repetition, loss. Times are `performance.now()` of the test, in
 * milliseconds.
 */

/**
 * An attempt is judged before it begins: so long after its successor was acknowledged, no event comes any more. A node
 * may stand still in between, for as long as a fault lasts.
 */
const judgedMs = 15_000

/** What is wrong with the events of a livestream at a webhook that gets every track. */
export function wrongAtWebhook(
  all: readonly Attempt[],
  webhook: string,
  livestream: string,
  sent: readonly Sent[],
): string[] {
  const tracks = tracksOf(livestream, sent)
  const attempts = attemptsOf(all, webhook, livestream)
  const lacking = tracks.filter(({ marker }) => !isAcknowledged(attempts, marker))
  return [
    ...lacking.map(({ marker }) => `${nameOf(webhook, livestream)} never got ${marker}`),
    ...wrongOrder(tracks, attempts).map((wrong) => `${nameOf(webhook, livestream)}: ${wrong}`),
  ]
}

/** The same for a webhook that gets only what is not over: it may lack every track but the last. */
export function wrongWorth(
  all: readonly Attempt[],
  webhook: string,
  livestream: string,
  sent: readonly Sent[],
): string[] {
  const tracks = tracksOf(livestream, sent)
  const attempts = attemptsOf(all, webhook, livestream)
  const last = tracks.at(-1)
  const lacking = last && !isAcknowledged(attempts, last.marker) ? [last.marker] : []
  const over = attempts.filter(({ marker, from }) => {
    const next = tracks[tracks.findIndex((track) => track.marker === marker) + 1]
    return next !== undefined && from > (next.acknowledgedAt ?? Infinity) + judgedMs
  })
  return [
    ...lacking.map((marker) => `${nameOf(webhook, livestream)} never got ${marker}, which plays now`),
    ...over.map(({ marker }) => `${nameOf(webhook, livestream)} got ${marker}, which was over`),
    ...wrongOrder(tracks, attempts).map((wrong) => `${nameOf(webhook, livestream)}: ${wrong}`),
  ]
}

/** The attempts of each webhook that were under way at once. `isOne`: the attempts of one order, or of one lane. */
export function overlaps(all: readonly Attempt[], isOne: (attempt: Attempt) => boolean): string[] {
  const last = new Map<string, Attempt>()
  return all.filter(isOne).flatMap((attempt) => {
    const before = last.get(attempt.webhook)
    if (!before || before.until < attempt.until) last.set(attempt.webhook, attempt)
    return before && before.until > attempt.from
      ? [`${attempt.webhook}: ${attempt.marker} while ${before.marker} was under way`]
      : []
  })
}

function tracksOf(of: string, sent: readonly Sent[]): Sent[] {
  return sent.filter(
    ({ kind, livestream, acknowledgedAt }) =>
      kind === 'track' && livestream === of && acknowledgedAt !== undefined,
  )
}

function attemptsOf(all: readonly Attempt[], webhook: string, livestream: string): Attempt[] {
  return all.filter((attempt) => attempt.webhook === webhook && attempt.livestream === livestream)
}

function isAcknowledged(attempts: readonly Attempt[], marker: string): boolean {
  return attempts.some((attempt) => attempt.isAcknowledged && attempt.marker === marker)
}

function wrongOrder(tracks: readonly Sent[], attempts: readonly Attempt[]): string[] {
  return outOfOrder(
    tracks,
    attempts.map(({ marker }) => marker),
  )
}

function nameOf(webhook: string, livestream: string): string {
  return webhook === livestream ? livestream : `${webhook}, ${livestream}`
}
