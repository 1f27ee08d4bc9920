import { answer } from '../answer.ts'
import { type AedesStart, startValidatingAedes } from './validating-aedes.ts'

/* Aedes in memory. */

export const commands = {
  start: (of: AedesStart): Promise<number> => startValidatingAedes(of),
}

answer(commands)
