import { setTimeout } from 'node:timers/promises'

/** Between two answers of `--watch`, milliseconds. */
const pauseMs = 2_000

/** Does something again and again, while it says that it is worth it. */
export async function again(act: () => Promise<boolean>): Promise<void> {
  while (await act()) await setTimeout(pauseMs)
}
