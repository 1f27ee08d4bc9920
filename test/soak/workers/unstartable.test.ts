import { copyFile, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { onRedis } from '../../redis-server.ts'
import { shareSigningKeyOn } from '../../signing-key.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { until } from '../../until.ts'
import { areBack, workersOf, workersOn } from './start-workers.ts'

/*
 * A worker whose process the system does not start, for lack of memory, processes or files, is tried again.
 */

const failed = 'a worker could not be started'

onRedis('a worker that cannot be started for a while comes back', async (t, redis) => {
  await shareSigningKeyOn(redis.url)
  const home = await temporaryDirectory(t)
  const node = join(home, 'node')
  await copyFile(process.execPath, node)
  const hub = await spawnHub(t, home, workersOn(redis.url), { node })
  const failures = () => hub.lines.filter(({ msg }) => msg === failed).map(({ err }) => Object(err).code)

  await rename(node, `${node}-away`)
  process.kill(workersOf(hub)[0] ?? 0, 'SIGKILL')
  await until(() => failures().includes('ENOENT'))
  // Of this error Node.js tells by another way: `fork` throws.
  await symlink(node, node)
  await until(() => failures().includes('ELOOP'))
  await rm(node)
  await rename(`${node}-away`, node)
  await until(() => areBack(hub, 1))
  t.equal(workersOf(hub).length, 3)
  t.equal(await hub.stop('SIGTERM'), 0)
})
