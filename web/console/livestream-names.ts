import { computed, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Livestream } from '../../operations/feed.ts'
import type { ShownLivestream } from '../../operations/institution/livestreams.ts'
import { user } from '../page/session.ts'
import { operate } from './operate.ts'
import { repeat, useAfterChange } from './poll.ts'
import { shortId } from './words.ts'

/** All livestreams of the feed; undefined: not known yet. */
export const livestreams = signal<readonly Livestream[] | undefined>(undefined)
/** Why the last request for the livestreams failed. Undefined: it did not. */
export const livestreamsProblem = signal<string | undefined>(undefined)

/** The livestreams of the user's institution, where the user may not see those of all. */
const own = signal<readonly ShownLivestream[]>([])

const livestreamNames = computed(
  () =>
    new Map([
      ...own.value.flatMap(({ livestreamId, externalId, title }): [string, string][] =>
        title === null
          ? []
          : [
              [livestreamId, title],
              ...(externalId === null ? [] : [[externalId, title] as [string, string]]),
            ],
      ),
      ...(livestreams.value ?? []).flatMap((one): [string, string][] => [
        [one.id, one.title],
        [one.externalId, one.title],
      ]),
    ]),
)

/** The ids of the livestreams of the user's institution. */
const ownIds = computed(() => {
  const ofFeed = (livestreams.value ?? []).filter(
    ({ institution }) => institution.id === user.value?.institution,
  )
  return new Set([...own.value.map(({ livestreamId }) => livestreamId), ...ofFeed.map(({ id }) => id)])
})

/** Whether a livestream belongs to the user's institution. */
export function isOwnLivestream(id: string): boolean {
  return ownIds.value.has(id)
}
const institutionNames = computed(
  () => new Map((livestreams.value ?? []).map(({ institution }) => [institution.id, institution.title])),
)

/** Ids and names of the institutions, sorted by name. */
export const institutions = computed(() =>
  [...institutionNames.value].toSorted(([, a], [, b]) => a.localeCompare(b)),
)

const everyMs = 10 * 60 * 1000
const againMs = 5_000

const reading = { current: () => {} }

/** Reads the names of livestreams and institutions as long as the console is open: of all, or what is the user's own. */
export function useNames(isOperator: boolean): void {
  const mayPublish = user.value?.permissions.includes('publish') ?? false
  useEffect(() => (isOperator ? readAll() : mayPublish ? readOwn() : undefined), [isOperator, mayPublish])
  useAfterChange((name) => {
    if (name === 'feed.refresh') reading.current()
  })
}

function readOwn() {
  return repeat(async () => {
    const answer = await operate('institution.livestreams.list')
    return () => {
      if ('result' in answer) own.value = answer.result
      return 'problem' in answer ? (answer.waitMs ?? againMs) : everyMs
    }
  })
}

function readAll() {
  return repeat(async () => {
    const answer = await operate('feed.lookup')
    return () => {
      livestreamsProblem.value = 'problem' in answer ? answer.problem : undefined
      if ('result' in answer) livestreams.value = answer.result
      return 'problem' in answer ? (answer.waitMs ?? againMs) : everyMs
    }
  }, reading)
}

/** The name of a livestream, by its id or external id. */
export function livestreamName(id: string): string {
  return livestreamNames.value.get(id) ?? shortId(id)
}

export function institutionName(id: string): string {
  return institutionNames.value.get(id) ?? shortId(id)
}

/** Replaces known ids of livestreams and institutions in a text by `Name (short id)`. */
export function withNames(text: string): string {
  return text.replace(/urn:org:[a-z-]+:[0-9a-f]+|crid:\/\/[^\s"<>,]+/g, (id) => {
    const name = livestreamNames.value.get(id) ?? institutionNames.value.get(id)
    return name === undefined ? id : `${name} (${shortId(id)})`
  })
}
