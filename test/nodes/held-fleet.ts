import type { Test } from 'tap'
import { startNetwork } from '../store/slow-network.ts'
import { startFleet } from './fleet.ts'

/**
 * Three nodes that all know a subscriber and a publisher. The test can hold back data between the first node and Redis.
 */
export async function startHeldFleet(
  t: Test,
  { institution, ahead }: { institution: string; ahead?: (index: number) => number },
) {
  let network: Awaited<ReturnType<typeof startNetwork>> | undefined
  const fleet = await startFleet(t, 3, {
    ...(ahead && { ahead }),
    async through(index, port) {
      if (index > 0) return `redis://127.0.0.1:${port}`
      network = await startNetwork(t, port)
      return network.url
    },
  })
  if (!network) throw new Error('no network')
  const { a, b, c } = fleet
  const subscriber = await a.subscriber('radio/#')
  const publisher = await a.publisher([institution])
  await Promise.all([b.knows(2), c.knows(2)])
  return { ...fleet, ...network, subscriber, publisher }
}
