import { effect, signal } from '@preact/signals'
import { fold } from '../../page/fold.ts'
import { currentPath, query } from '../../page/location.ts'
import { institutions } from '../names.ts'
import type { Typed } from '../parts/form.tsx'

/** The typed fields of the search form. They outlive the view. */
export const looked: Typed = signal<Readonly<Record<string, string>>>({})

const path = '/console/trace'
const names = ['item', 'whose', 'outcome'] as const

// Fills the form from the address. Outside of a component, the effect runs before the first rendering.
effect(() => {
  const searched = currentPath.value === path ? searchOf(query.value) : undefined
  if (searched) looked.value = searched
})

/** The address of a search, for links and the history of the browser. */
export function searchAt(typed: Readonly<Record<string, string>>): string {
  const given = names.flatMap((name) => (typed[name] ? [[name, typed[name]]] : []))
  return `${path}?${new URLSearchParams(given.length > 0 ? given : [['outcome', '']])}`
}

/** The address of the live tail, which shows new events as they come. */
export const tailAt = path

/** The search that an address asks for. Undefined: it asks for none. */
export function searchOf(query: string): Readonly<Record<string, string>> | undefined {
  const given = [...new URLSearchParams(query)].filter(([name]) => names.some((known) => known === name))
  return given.length > 0 ? Object.fromEntries(given) : undefined
}

/** The arguments with which a search asks the node: those of `events.list` and `events.tail`. */
export function argsOf({ whose = '', outcome = '', item = '' }: Readonly<Record<string, string>>) {
  const name = whose.trim()
  const institution = institutionOf(name)
  return {
    ...(name !== '' && (institution === undefined ? { livestream: name } : { institution })),
    ...(outcome !== '' && { outcome }),
    ...(item.trim() !== '' && { item: item.trim() }),
  }
}

/** The URN of the institution that has this URN or name. */
function institutionOf(name: string): string | undefined {
  if (name.startsWith('urn:org:institution:')) return name
  return institutions.value.find(([, title]) => fold(title) === fold(name))?.[0]
}
