const refusalName = 'Refusal'
const failureName = 'Failure'

/**
 * Makes the error of a command that refuses a request. The message is for the person who asked. Every other error that
 * a command throws counts as a fault of the node.
 */
export function refusal(message: string): Error {
  return named(refusalName, new Error(message))
}

/** Whether an error says that a command refused a request. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === refusalName
}

/** Makes the error of a command that failed. The message is for the person who asked, the cause is for the log. */
export function failure(message: string, cause: unknown): Error {
  return named(failureName, new Error(message, { cause }))
}

/** Whether an error was made by `failure`, so that its message is for the person who asked. */
export function isFailure(error: unknown): error is Error {
  return error instanceof Error && error.name === failureName
}

/** The message of an error, for the person who asked. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Returns the outcome. If it is an error, throws a refusal with the text of the error. */
export function unlessError<T extends object>(outcome: T | { error: string }): T {
  if ('error' in outcome) throw refusal(outcome.error)
  return outcome
}

/** Makes the refusal of a request for a thing that does not exist. */
export function unknownName(what: string, name: string): Error {
  return refusal(`there is no ${what} ${JSON.stringify(name)}`)
}

/**
 * Returns `typed` if it is one of the names, else the only name that begins with `typed`. A name fits also if its part
 * after the last dot begins with `typed`. Throws a refusal if no name or several names fit.
 */
export function uniqueByPrefix(what: string, typed: string, names: readonly string[]): string {
  if (names.includes(typed)) return typed
  const begun = names.filter(
    (name) => name.startsWith(typed) || name.slice(name.lastIndexOf('.') + 1).startsWith(typed),
  )
  const [name, ...others] = begun
  if (name === undefined) throw unknownName(what, typed)
  if (others.length > 0) throw refusal(`${begun.length} names begin with ${JSON.stringify(typed)}: type more`)
  return name
}

/** Throws a refusal if the outcome is false (nothing has this name) or is an error of the node that had to act. */
export function assertCarriedOut(outcome: boolean | { error: string }, what: string, name: string): void {
  if (outcome === false) throw unknownName(what, name)
  if (outcome !== true) throw refusal(outcome.error)
}

function named(name: string, error: Error): Error {
  error.name = name
  return error
}
