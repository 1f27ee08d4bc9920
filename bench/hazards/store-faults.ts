import type { Subject } from './subject.ts'

/** What a Redis does that has had a failover, that is full, or whose network breaks. */
const faults = {
  /** Reads are served, writes are refused: a replica that was the primary. */
  'is read-only': { begin: [['replicaof', '127.0.0.1', '1']], end: [['replicaof', 'no', 'one']] },
  /** What puts messages into queues: `mset` of aedes-persistence-redis, and the scripts of a hub. */
  refuses: {
    begin: [['acl', 'setuser', 'default', '-mset', '-evalsha', '-eval']],
    end: [['acl', 'setuser', 'default', '+@all']],
  },
} satisfies Record<string, { begin: string[][]; end: string[][] }>

/** Does the work while Redis has a fault. */
export async function withFault<Result>(
  { redis }: Pick<Subject, 'redis'>,
  fault: keyof typeof faults,
  work: () => Promise<Result>,
): Promise<Result> {
  const { begin, end } = faults[fault]
  const run = async (commands: string[][]) => {
    for (const [command = '', ...args] of commands) await redis?.ask(command, ...args)
  }
  await run(begin)
  try {
    return await work()
  } finally {
    await run(end)
  }
}

/**
 * Breaks the connections over which a system hears of messages: those that wait for published ones, or, where there is no
 * such connection, all.
 */
export async function breakConnections({ redis }: Pick<Subject, 'redis'>): Promise<void> {
  const listening = Number(await redis?.ask('client', 'kill', 'type', 'pubsub'))
  if (listening === 0) await redis?.ask('client', 'kill', 'type', 'normal', 'skipme', 'yes')
}
