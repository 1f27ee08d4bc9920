export type Stop = ReturnType<typeof createStop>

/** Milliseconds. The tool that started this process repeats the signal of a Ctrl-C within this time. */
const echoMs = 500

/** Longest time for all clients to connect, milliseconds. */
const connectMs = 15_000

/** Ends the demonstration on a signal, when its output has no reader, or on a fault. A second Ctrl-C exits at once. */
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
    /** The reason why the demonstration cannot go on, if something broke. */
    fault: () => fault,

    /** Ends the demonstration because something broke. The first reason is kept. */
    because(reason: string): void {
      if (done) return
      fault ??= reason
      controller.abort()
    },

    /** Returns the result of `work`. Rejects on a fault, or after `connectMs`. */
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

    /** From now on, the end of a connection or a process is no fault. */
    finished(): void {
      done = true
    },
  }
}
