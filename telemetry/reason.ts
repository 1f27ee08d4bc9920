/** The messages of an error and of its causes, in one line. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause === undefined ? '' : `: ${reasonOf(error.cause)}`
  return `${error.message}${cause}`.replaceAll('\n', ' ')
}
