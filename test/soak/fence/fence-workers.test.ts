import t from 'tap'
import { startBackend } from './cluster.ts'
import { checkSeeds } from './seeds.ts'

/*
 * A node with two workers, and one more node. Beside the faults of nodes, single workers are killed and stopped.
 */
checkSeeds(t, {
  topology: 'two workers and a node',
  count: 1,
  workers: [2, 1],
  needsRedis: true,
  openBackend: startBackend,
})
