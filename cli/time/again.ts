import { setTimeout } from 'node:timers/promises'

/** Pause between two answers of `--watch`, milliseconds. */
const pauseMs = 2_000

/** Repeats `act` until it resolves with false, with a pause of two seconds before each repetition. */
export async function again(act: () => Promise<boolean>): Promise<void> {
  while (await act()) await setTimeout(pauseMs)
}
