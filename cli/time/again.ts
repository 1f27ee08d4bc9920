import { setTimeout } from 'node:timers/promises'

/** Pause between two answers of `--watch`, milliseconds. */
const pauseMs = 2_000

/** Repeats `act`, with pauses, until `act` resolves with false. */
export async function again(act: () => Promise<boolean>): Promise<void> {
  while (await act()) await setTimeout(pauseMs)
}
