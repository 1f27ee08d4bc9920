import { setTimeout } from 'node:timers/promises'

/** Pause between two answers of `--watch`, milliseconds. */
const pauseMs = 2_000

/** Repeats `act`, with a pause between, until it resolves with false. */
export async function again(act: () => Promise<boolean>): Promise<void> {
  while (await act()) await setTimeout(pauseMs)
}
