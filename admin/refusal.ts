const refusalName = 'Refusal'
const failureName = 'Failure'

/**
 * Thrown by a command that will not do what it was asked. The message is for the one who asked.
 * Every other error that a command throws counts as a fault of the node.
 */
export function refusal(message: string): Error {
  return named(refusalName, new Error(message))
}

/** Whether a command will not do what it was asked. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === refusalName
}

/** Thrown by a command that failed. The message is for the one who asked, the cause for the log. */
export function failure(message: string, cause: unknown): Error {
  return named(failureName, new Error(message, { cause }))
}

/** Whether the message of an error is for the one who asked. */
export function isFailure(error: unknown): error is Error {
  return error instanceof Error && error.name === failureName
}

/** An error in one line, for the one who asked. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Returns the outcome, or throws the refusal that it stands for. */
export function accepted<T extends object>(outcome: T | { error: string }): T {
  if ('error' in outcome) throw refusal(outcome.error)
  return outcome
}

/** Refuses because nothing has this name. */
export function unknown(what: string, name: string): Error {
  return refusal(`there is no ${what} ${JSON.stringify(name)}`)
}

/** Returns the typed name, or the only name that begins with it. A name counts from its start or its last dot. */
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

/** Throws a refusal if nothing has this name, or if its node did not carry the command out. */
export function carriedOut(outcome: boolean | { error: string }, what: string, name: string): void {
  if (outcome === false) throw unknown(what, name)
  if (outcome !== true) throw refusal(outcome.error)
}

function named(name: string, error: Error): Error {
  error.name = name
  return error
}
