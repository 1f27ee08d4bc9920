import { reasonOf } from '../telemetry/reason.ts'

/** What `JSON.parse` returns: the types of both ends say what it is. */
type Parsed = ReturnType<typeof JSON.parse>

/** The questions that one end answers, by name. Arguments and answers must survive JSON. */
type Answers = { [name: string]: (...args: Parsed[]) => unknown }

type AnswerOf<Answer> = Answer extends (...args: never[]) => infer Result ? Awaited<Result> : never
type ArgumentsOf<Answer> = Answer extends (...args: infer Args) => unknown ? Args : never

export type Link<Other> = ReturnType<typeof createLink<Other>>

/**
 * One end of the channel between the primary and a worker. Each end asks questions, and answers those of the other.
 * `Other`: the questions that the other end answers.
 */
export function createLink<Other>(send: (text: string) => void, own: Answers) {
  const waiting = new Map<number, (answer: { result?: Parsed; error?: string }) => void>()
  let last = 0

  return {
    /** Asks the other end. Rejects with the reason of the other end, or if that end is gone. */
    ask<Name extends keyof Other & string>(
      name: Name,
      ...args: ArgumentsOf<Other[Name]>
    ): Promise<AnswerOf<Other[Name]>> {
      return new Promise((resolve, reject) => {
        const id = ++last
        waiting.set(id, ({ result, error }) => {
          waiting.delete(id)
          if (error === undefined) resolve(result)
          else reject(new Error(error))
        })
        send(JSON.stringify({ id, name, args }))
      })
    },

    /** Tells the other end, which does not answer. Nothing happens if that end is gone. */
    tell<Name extends keyof Other & string>(name: Name, ...args: ArgumentsOf<Other[Name]>): void {
      send(JSON.stringify({ name, args }))
    },

    /** Takes a message of the other end. */
    receive(text: unknown): void {
      const message: Parsed = JSON.parse(String(text))
      if (message.name === undefined) waiting.get(message.id)?.(message)
      else if (message.id === undefined) own[message.name]?.(...message.args)
      else void answer(message.id, message.name, message.args)
    },

    /** The other end is gone: nobody answers any more. */
    end(): void {
      for (const settle of [...waiting.values()]) settle({ error: 'the other process has ended' })
    },
  }

  async function answer(id: number, name: string, args: Parsed[]): Promise<void> {
    try {
      send(JSON.stringify({ id, result: (await own[name]?.(...args)) ?? null }))
    } catch (error) {
      send(JSON.stringify({ id, error: reasonOf(error) }))
    }
  }
}
