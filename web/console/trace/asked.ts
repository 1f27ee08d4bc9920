import { effect, signal } from '@preact/signals'
import { instantOf, momentOf } from '../../page/instant.ts'
import { currentPath, query } from '../../page/location.ts'
import { searchText } from '../../page/search-text.ts'
import { livestreams, livestreamsProblem } from '../livestream-names.ts'
import type { Typed } from '../parts/form.tsx'

/** The typed fields of the search form. They outlive the view. */
export const looked: Typed = signal<Readonly<Record<string, string>>>({})

const path = '/console/trace'
const names = ['item', 'whose', 'outcome', 'since', 'before'] as const

// Fills the form from the address. Outside of a component, the effect runs before the first rendering.
effect(() => {
  const searched = currentPath.value === path ? searchOf(query.value) : undefined
  if (!searched) return
  const { since = '', before = '' } = searched
  looked.value = { ...searched, since: momentOf(since), before: momentOf(before) }
})

/** The address of a search, for links and the history of the browser. */
export function searchAt(typed: Readonly<Record<string, string>>): string {
  const shown = searchOf(query.value) ?? {}
  const given = names.flatMap((name) => {
    const text = typed[name]
    // Times are instants in an address, because its reader may be in another time zone.
    return text ? [[name, name === 'since' || name === 'before' ? instantOf(text, shown[name]) : text]] : []
  })
  return `${path}?${new URLSearchParams(given.length > 0 ? given : [['outcome', '']])}`
}

/** The address of the live tail, which shows new events as they come. */
export const tailAt = path

/** The search that an address asks for. Undefined: it asks for none. */
export function searchOf(query: string): Readonly<Record<string, string>> | undefined {
  const given = [...new URLSearchParams(query)].filter(([name]) => names.some((known) => known === name))
  return given.length > 0 ? Object.fromEntries(given) : undefined
}

/** The arguments of `events.list` for a search. */
export function searchArgs(searched: Readonly<Record<string, string>>) {
  const { since = '', before = '' } = searched
  return { ...tailArgs(searched), ...(since !== '' && { since }), ...(before !== '' && { before }) }
}

/** The arguments of `events.tail`: a tail has no times. */
export function tailArgs({ whose = '', outcome = '', item = '' }: Readonly<Record<string, string>>) {
  const name = whose.trim()
  const institution = institutionOf(name)
  return {
    ...(name !== '' && (institution === undefined ? { livestream: name } : { institution })),
    ...(outcome !== '' && { outcome }),
    ...(item.trim() !== '' && { item: item.trim() }),
  }
}

/** False: the names that the field `whose` needs are still being loaded. */
export function hasNamesFor({ whose = '' }: Readonly<Record<string, string>>): boolean {
  const isId = /^(urn:|crid:|$)/.test(whose.trim())
  return isId || livestreams.value !== undefined || livestreamsProblem.value !== undefined
}

/** The URN of the institution that has this URN or name, or this acronym if no livestream has it as its name. */
function institutionOf(name: string): string | undefined {
  if (name.startsWith('urn:org:institution:')) return name
  const isAsked = (text: string) => searchText(text) === searchText(name)
  const all = livestreams.value ?? []
  const named = all.find(({ institution }) => isAsked(institution.title))
  if (named || all.some(({ title }) => isAsked(title))) return named?.institution.id
  return all.find(({ institution }) => isAsked(institution.acronym))?.institution.id
}
