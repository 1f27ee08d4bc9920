import { encodeGroup } from './changes.ts'
import type { Connection } from './connection.ts'
import { type CommitOutcome, numbersOf } from './log.ts'
import { type Argument, commitScript, type Keys, type Send } from './script.ts'
import type { MemberRecord, TimedPending } from './timed-commit.ts'

/** Milliseconds that one WAIT may take. Meanwhile the connection does nothing else. */
const waitMs = 100

/** Sends groups of commits to Redis, and waits for `replicas`. */
export function createSending(parts: {
  connection: Connection
  keys: Keys
  /** The name of this node in the log. */
  node: string
  /** Bytes of the log between two marks (`keys.marks`). */
  markEvery: number
  /** Number of replicas that must have received a group of commits before `send` resolves. */
  replicas: number
}) {
  const { connection, keys, node, markEvery, replicas } = parts
  const commitKeys = [keys.values, keys.keys, keys.log, keys.head, keys.marks, keys.writer(node)]
  /** For an error message: how many replicas have a group; undefined if enough. */
  let shortfall: string | undefined

  return {
    waitsForReplicas: replicas > 0,

    /**
     * Sends a group, if necessary several times, until Redis answers (see `commitLua`). Calls `take` once, when there
     * is a connection, to get the commits. Calls `read` at each attempt. `read` returns the id of the newest log entry
     * that this node knows.
     */
    async send(
      number: number,
      how: { take: () => readonly TimedPending[]; read: () => string; fence: MemberRecord | undefined },
    ): Promise<{ id: string; outcome: CommitOutcome }> {
      const fenced = how.fence ? [how.fence.key, how.fence.value] : []
      let args: Argument[] | undefined
      const answer = await connection.write(async (send) => {
        args ??= argsOf(number, how.take())
        const answer = await commitScript(send, commitKeys, [...args, how.read(), ...fenced])
        if (replicas > 0) await replicated(send)
        return answer
      })
      return readAnswer(answer)
    },

    /** For an error message: why `send` has not resolved. */
    reason: (): string => shortfall ?? connection.noAnswer().message,
  }

  function argsOf(number: number, commits: readonly TimedPending[]): Argument[] {
    const { changes, conditions, taken } = encodeGroup(commits.map(({ changes }) => changes))
    return [node, number, changes, markEvery, conditions, taken]
  }

  /** Resolves when enough replicas have all earlier writes of this connection. */
  async function replicated(send: Send): Promise<void> {
    for (;;) {
      const reached = Number(await send('wait', [replicas, waitMs]))
      if (reached >= replicas) break
      shortfall = `${reached} of ${replicas} replicas of Redis have it (HUB_REDIS_REPLICAS)`
    }
    shortfall = undefined
  }
}

/** Reads an answer of `commitLua`. */
function readAnswer(answer: unknown): { id: string; outcome: CommitOutcome } {
  const [place = '', failed, base = 0] = String(answer).split(' ')
  const isLogged = !place.startsWith('=')
  return {
    id: isLogged ? place : place.slice(1),
    outcome: { failed: numbersOf(failed), base: Number(base), isLogged },
  }
}
