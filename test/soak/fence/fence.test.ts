import t from 'tap'
import { ownBackend, startBackend } from './cluster.ts'
import { checkSeeds } from './seeds.ts'
import { startSentinelBackend } from './sentinel.ts'

const replicas = process.env.FENCE_REPLICAS
const isReplicated = process.env.FENCE_STORE === 'sentinel'

if (process.env.FENCE_STORE === 'embedded') {
  // A node with a store of its own is killed and stopped.
  checkSeeds(t, {
    topology: 'one node',
    count: 2,
    workers: [1],
    needsRedis: false,
    openBackend: ownBackend,
    isWanted: ({ target, kind }) => target === 0 && (kind === 'kill' || kind === 'stop'),
  })
} else {
  checkSeeds(t, {
    topology: 'three nodes',
    count: 2,
    workers: [1, 1, 1],
    needsRedis: true,
    openBackend: isReplicated ? startSentinelBackend : startBackend,
    settings: replicas === undefined ? {} : { HUB_REDIS_REPLICAS: replicas },
    mayLose: isReplicated,
  })
}
