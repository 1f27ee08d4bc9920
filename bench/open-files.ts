import { readdir } from 'node:fs/promises'

const lookEveryMs = 100

/** Watches how many files and sockets a process has open. `end` returns the most that it had more than at first. */
export function watchOpenFiles(pid: number) {
  let first: number | undefined
  let most = 0
  const look = async () => {
    const open = await readdir(`/proc/${pid}/fd`).catch(() => undefined)
    if (!open) return
    first ??= open.length
    most = Math.max(most, open.length)
  }
  void look()
  const timer = setInterval(() => void look(), lookEveryMs)
  return {
    async end(): Promise<number> {
      clearInterval(timer)
      await look()
      return most - (first ?? NaN)
    },
  }
}
