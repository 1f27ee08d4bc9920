import { computed, signal } from '@preact/signals'
import { fold } from '../page/fold.ts'
import {
  announcing,
  type Institution,
  institutions,
  isListed,
  type Livestream,
  livestreams,
} from './livestreams.ts'

/** The text that the visitor searches for. */
export const search = signal('')
/** Whether only livestreams with an announcement are shown. */
export const isAnnouncingOnly = signal(false)

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
  const sought = fold(search.value)
  const pool = isAnnouncingOnly.value ? announcing.value : [...livestreams.value.values()]
  return [...institutions.value, others.value].flatMap((institution) => {
    const own = pool.filter(({ institutionId }) => institutionId === institution.id)
    const names = fold(`${institution.title} ${institution.acronym}`)
    const found = sought === '' ? own : own.filter((one) => names.includes(sought) || has(one, sought))
    return found.length > 0 ? [{ institution, livestreams: found }] : []
  })
})

function has({ title, now }: Livestream, sought: string): boolean {
  const { playing } = now.value
  return [title, playing?.title ?? '', playing?.artist ?? ''].some((text) =>
    fold(text.slice(0, longest)).includes(sought),
  )
}
