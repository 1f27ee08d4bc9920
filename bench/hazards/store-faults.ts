import type { Subject } from './subject.ts'

/** Faults of Redis, with the commands that begin and end each of them. */
const faults = {
  /** Redis refuses writes, as a former primary does after a failover. */
  'is read-only': { begin: [['replicaof', '127.0.0.1', '1']], end: [['replicaof', 'no', 'one']] },
  /** Redis refuses the commands that put messages into queues: `mset` of Aedes, scripts of a hub. */
  refuses: {
    begin: [['acl', 'setuser', 'default', '-mset', '-evalsha', '-eval']],
    end: [['acl', 'setuser', 'default', '+@all']],
  },
} satisfies Record<string, { begin: string[][]; end: string[][] }>

/** Runs `work` while Redis has a fault, and then ends the fault. */
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
 * Breaks the connections over which Redis tells a system of new messages. If no connection subscribes to channels,
 * breaks all connections of the system.
 */
export async function breakConnections({ redis }: Pick<Subject, 'redis'>): Promise<void> {
  const listening = Number(await redis?.ask('client', 'kill', 'type', 'pubsub'))
  if (listening === 0) await redis?.ask('client', 'kill', 'type', 'normal', 'skipme', 'yes')
}
