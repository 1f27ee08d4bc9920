import type { TObject, TProperties } from 'typebox'
import { Type } from '../../event/type.ts'

/** The effect of a command. `loss`: it removes something for good, so programs ask for confirmation. */
export type Effect = 'none' | 'change' | 'loss'

/** A command of operators, as all doors (admin socket, HTTPS, `hubctl`) know it. */
export interface Operation {
  summary: string
  effect: Effect
  /** The schema of the arguments. Its descriptions complete the sentence "<argument> must be …". */
  args: TObject
  /** Only for a command that answers line by line. HTTPS adds these arguments to get one answer instead. */
  singleAnswerArgs?: Record<string, unknown>
}

/** A command that only reads. */
export function reads<P extends TProperties>(summary: string, properties?: P, example?: object) {
  return row('none', summary, properties, example)
}

/** A command that changes something. */
export function changes<P extends TProperties>(summary: string, properties?: P, example?: object) {
  return row('change', summary, properties, example)
}

/** A command that removes something for good. */
export function loses<P extends TProperties>(summary: string, properties?: P, example?: object) {
  return row('loss', summary, properties, example)
}

function row<P extends TProperties>(
  effect: Effect,
  summary: string,
  properties = {} as P,
  example: object = {},
) {
  const args = Type.Object(properties, { additionalProperties: false, examples: [example] })
  return { summary, effect, args }
}
