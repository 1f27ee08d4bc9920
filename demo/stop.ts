export type Stop = ReturnType<typeof createStop>

/** One Ctrl-C may arrive twice, from the terminal and from the tool that started this process. */
const echoMs = 500

/** Longest time for everyone to connect, milliseconds. */
const connectMs = 15_000

/**
 * Ends the demonstration when a person wants it (Ctrl-C, the terminal or the reader of a pipe went away), or when
 * something broke. A second Ctrl-C ends it at once.
 */
export function createStop() {
  const controller = new AbortController()
  let fault: string | undefined
  let done = false
  let first = 0

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const now = performance.now()
      if (first > 0 && now - first > echoMs) process.exit(130)
      first ||= now
      controller.abort()
    })
  }
  process.stdout.on('error', () => controller.abort())

  return {
    signal: controller.signal,
    /** Why it cannot go on, if something broke. */
    fault: () => fault,

    /** Something broke: the first reason counts. */
    because(reason: string): void {
      if (done) return
      fault ??= reason
      controller.abort()
    },

    /** The result of connecting; rejects when something broke meanwhile, or it takes too long. */
    unlessBroken<T>(work: Promise<T>): Promise<T> {
      return new Promise((resolve, reject) => {
        work.then(resolve, reject)
        const late = setTimeout(
          () => reject(new Error(`not everyone connected within ${connectMs} ms`)),
          connectMs,
        )
        late.unref()
        controller.signal.addEventListener('abort', () => {
          if (fault !== undefined) reject(new Error(fault))
        })
      })
    },

    /** From now on connections and processes may end. */
    finished(): void {
      done = true
    },
  }
}
