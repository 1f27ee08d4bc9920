import { computed, effect, signal } from '@preact/signals'
import { currentPath, query, replaceAddress } from '../page/location.ts'
import { searchText } from '../page/search-text.ts'
import {
  announcing,
  type Institution,
  institutions,
  isListed,
  type Livestream,
  livestreams,
} from './livestreams.ts'

const asked = new URLSearchParams(location.search)
/** The text that the visitor searches for. */
export const search = signal(asked.get('search') ?? '')
/** Whether only livestreams with an announcement are shown. */
export const isAnnouncingOnly = signal(asked.has('announcements'))

/** The address follows the typing after this time, milliseconds: browsers refuse many changes at once. */
const settleMs = 300

// Writes the search into the address of the board, so that it survives a reload and can be passed on.
effect(() => {
  const terms = new URLSearchParams({
    ...(search.value.trim() !== '' && { search: search.value.trim() }),
    ...(isAnnouncingOnly.value && { announcements: '' }),
  })
  const wanted = terms.size === 0 ? '' : `?${terms}`
  if (currentPath.value !== '/' || query.value === wanted) return
  const timer = setTimeout(() => replaceAddress(`/${wanted}`), settleMs)
  return () => clearTimeout(timer)
})

/** Number of characters of each title that are searched: titles may have any length. */
const longest = 500

/** An institution with those of its livestreams that match. */
export interface Group {
  institution: Institution
  livestreams: readonly Livestream[]
}

/** Stands for the institution of livestreams outside of the list. Without a list, all livestreams are in this group. */
const others = computed(
  (): Institution => ({
    id: '',
    title: isListed.value ? 'Not in the livestream feed' : 'Livestreams',
    acronym: '',
  }),
)

/** The livestreams that match, by institution, in the order of the feed. */
export const groups = computed((): Group[] => {
  const words = searchText(search.value).split(' ').filter(Boolean)
  const pool = isAnnouncingOnly.value ? announcing.value : [...livestreams.value.values()]
  const byInstitution = new Map<string, Livestream[]>()
  for (const one of pool) {
    const known = byInstitution.get(one.institutionId)
    if (known) known.push(one)
    else byInstitution.set(one.institutionId, [one])
  }
  return [...institutions.value, others.value].flatMap((institution) => {
    const own = byInstitution.get(institution.id) ?? []
    const names = searchText(`${institution.title} ${institution.acronym}`)
    const isMeant = (text: string) => words.every((word) => text.includes(word))
    const found = words.length === 0 ? own : own.filter((one) => isMeant(`${names} ${textOf(one)}`))
    return found.length > 0 ? [{ institution, livestreams: found }] : []
  })
})

/** What of a livestream is searched. */
function textOf({ title, now }: Livestream): string {
  const { playing } = now.value
  return [title, playing?.title ?? '', playing?.artist ?? '']
    .map((text) => searchText(text.slice(0, longest)))
    .join(' ')
}
