import type { Log } from '../telemetry/log.ts'

const refusalName = 'Refusal'
/** The cause of a refusal that says that there is nothing of a name. */
const nothingOfThatName = 'nothing of that name'
const failureName = 'Failure'

/**
 * The error of a command that refuses a request. The person who asked gets the message. Other errors count as faults of
 * the node.
 */
export function refusal(message: string): Error {
  return named(refusalName, new Error(message))
}

/** Whether an error says that a command refused a request. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === refusalName
}

/** The error of a command that failed: a message for the person who asked, a cause for the log. */
export function failure(message: string, cause: unknown): Error {
  return named(failureName, new Error(message, { cause }))
}

/** Whether an error was made by `failure`. */
function isFailure(error: unknown): error is Error {
  return error instanceof Error && error.name === failureName
}

/** Why a command failed, for the person who asked. */
export interface Failed {
  code: 'refused' | 'internal'
  /** The command names something that does not exist. */
  isUnknown?: true
  message: string
}

/** Says why a command failed, for the person who asked. The log has the rest. */
export function describeFailure(
  err: unknown,
  log: Pick<Log, 'error'>,
  about: { command: string; who: string },
): Failed {
  if (isRefusal(err)) {
    const isUnknown = err.cause === nothingOfThatName
    return { code: 'refused', message: err.message, ...(isUnknown && { isUnknown }) }
  }
  log.error({ err, ...about }, 'an admin command failed')
  const message = isFailure(err) ? err.message : 'the node could not do it; its log says why'
  return { code: 'internal', message }
}

/** Returns the outcome, or throws a refusal with the text of its error. */
export function unlessError<T extends object>(outcome: T | { error: string }): T {
  if ('error' in outcome) throw refusal(outcome.error)
  return outcome
}

/** Makes the refusal of a request for a thing that does not exist. */
export function unknownName(what: string, name: string): Error {
  const message = `there is no ${what} ${JSON.stringify(name)}`
  return named(refusalName, new Error(message, { cause: nothingOfThatName }))
}

/**
 * Returns the name `typed`, or else the only name that begins with `typed`. The part behind the last dot counts as a
 * name too. Throws a refusal if no name or several fit.
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

/** Throws a refusal if the outcome is false (nothing has this name) or an error. */
export function assertCarriedOut(outcome: boolean | { error: string }, what: string, name: string): void {
  if (outcome === false) throw unknownName(what, name)
  if (outcome !== true) throw refusal(outcome.error)
}

function named(name: string, error: Error): Error {
  error.name = name
  return error
}
