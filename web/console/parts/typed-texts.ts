import { signal } from '@preact/signals'
import type { Command } from '../commands.ts'
import { textsAtFirst } from './arguments.ts'
import type { Typed } from './form.tsx'

/** What the user typed for a command, also while the form to log in is shown. */
const kept = new Map<string, Typed>()

/** The texts of the form of a command. `known`: the arguments that the form does not ask for. */
export function typedFor(
  command: Command,
  known: Readonly<Record<string, unknown>> = {},
  row: Readonly<Record<string, unknown>> = {},
): { typed: Typed; forget: () => void } {
  const key = JSON.stringify([command.name, known])
  const typed = kept.get(key) ?? signal(textsAtFirst(command, row))
  kept.set(key, typed)
  return { typed, forget: () => void kept.delete(key) }
}
