import { signal } from '@preact/signals'
import type { Typed } from '../parts/form.tsx'

/** What is looked for; it stays while other views are open. */
export const looked: Typed = signal<Readonly<Record<string, string>>>({})

/** Whose events, and which of them, as the commands want it. */
export function argsOf({ whose = '', outcome = '', item = '' }: Readonly<Record<string, string>>) {
  const name = whose.trim()
  const isInstitution = name.startsWith('urn:org:institution:')
  return {
    ...(name !== '' && (isInstitution ? { institution: name } : { livestream: name })),
    ...(outcome !== '' && { outcome }),
    ...(item.trim() !== '' && { item: item.trim() }),
  }
}
