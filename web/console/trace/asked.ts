import { signal } from '@preact/signals'
import { fold } from '../../page/fold.ts'
import { institutions } from '../names.ts'
import type { Typed } from '../parts/form.tsx'

/** What is looked for; it stays while other views are open. */
export const looked: Typed = signal<Readonly<Record<string, string>>>({})

/** Whose events, and which of them, as the commands want it. */
export function argsOf({ whose = '', outcome = '', item = '' }: Readonly<Record<string, string>>) {
  const name = whose.trim()
  const institution = institutionOf(name)
  return {
    ...(name !== '' && (institution === undefined ? { livestream: name } : { institution })),
    ...(outcome !== '' && { outcome }),
    ...(item.trim() !== '' && { item: item.trim() }),
  }
}

/** The institution of this URN or name. */
function institutionOf(name: string): string | undefined {
  if (name.startsWith('urn:org:institution:')) return name
  return institutions.value.find(([, title]) => fold(title) === fold(name))?.[0]
}
