import { refusal } from './socket.ts'

/** What a command is asked with: nothing is checked yet. */
type Args = Record<string, unknown>

/** The outcome, or the refusal it stands for. */
export function accepted<T extends object>(outcome: T | { error: string }): T {
  if ('error' in outcome) throw refusal(outcome.error)
  return outcome
}

/** Refuses because nothing has this name. */
export function unknown(what: string, name: string): Error {
  return refusal(`there is no ${what} ${JSON.stringify(name)}`)
}

/** The name that was typed, or the only one that begins so, as a whole or behind its last dot. */
export function theOne(what: string, typed: string, names: readonly string[]): string {
  if (names.includes(typed)) return typed
  const begun = names.filter(
    (name) => name.startsWith(typed) || name.slice(name.lastIndexOf('.') + 1).startsWith(typed),
  )
  const [name, ...others] = begun
  if (name === undefined) throw unknown(what, typed)
  if (others.length > 0) throw refusal(`${begun.length} names begin with ${JSON.stringify(typed)}: type more`)
  return name
}

/** Throws a refusal if there is no such thing, or if its node did not answer. */
export function carriedOut(outcome: boolean | { error: string }, what: string, name: string): void {
  if (outcome === false) throw unknown(what, name)
  if (outcome !== true) throw refusal(outcome.error)
}

/** An argument that is a text; empty only where that means something. */
export function text(args: Args, name: string): string {
  const value = args[name]
  if (typeof value !== 'string' || (value === '' && name !== 'payload'))
    throw refusal(`${name} must be a text`)
  return value
}

/** An argument that is a list of texts; absent: empty. */
export function texts(args: Args, name: string): string[] {
  const value = args[name] ?? []
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
    throw refusal(`${name} must be a list of texts`)
  }
  return value
}

/** An argument that is a number, or absent. */
export function optionalNumber(args: Args, name: string): number | undefined {
  const value = args[name] ?? undefined
  if (value !== undefined && typeof value !== 'number') throw refusal(`${name} must be a number`)
  return value
}
