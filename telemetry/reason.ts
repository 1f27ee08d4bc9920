/** The code of an error, such as `ENOENT`. Empty: it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** The messages of an error and of its causes, in one line. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // If no address of a host can be reached, the error is an AggregateError without a message.
  const { cause, name, message } = error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : name
  const reason = (message || code).replace(/\s+/g, ' ').trim()
  return cause === undefined ? reason : `${reason}: ${reasonOf(cause)}`
}
