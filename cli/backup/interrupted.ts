const names = ['SIGINT', 'SIGTERM'] as const

/** Does work that leaves files behind. Ctrl-C aborts `signal`, so that the work can remove them: it rejects then. */
export async function unlessInterrupted<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ended = new AbortController()
  const end = (name: string) => ended.abort(new Error(`ended by ${name}`))
  for (const name of names) process.once(name, end)
  try {
    return await work(ended.signal)
  } catch (error) {
    throw ended.signal.reason ?? error
  } finally {
    for (const name of names) process.off(name, end)
  }
}
