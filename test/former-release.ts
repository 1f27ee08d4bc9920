import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import type { Redis } from 'ioredis'
import { formerKeysOf } from '../store/redis/script.ts'
import { contentOf, encode } from '../store/stored-value.ts'
import { projectFile } from './root.ts'
import type { Issued } from './start-hub.ts'
import type { Driver } from './stores.ts'

/*
 * Stores as the release before the journal left them (commit 03cbc76), made once by its nodes and their clients: on
 * LevelDB after a stop, on Redis after kill -9. The first line is about the others, each of which is a key and what is
 * stored there, its event time included, in base64.
 *
 * Client `app` (`radio/#`, QoS 1) left four messages unacknowledged, the first of them a retained value, and was away for
 * fourteen more. `reports` was away for two reports of its institution. `twice` has an event on its way that was
 * received at QoS 2 by the identifier 7 and not released.
 *
 * Two webhooks of the livestream, and the plugin target `dts`, were made by a node of commit 9c1e16f, which stored them the
 * same way. The endpoints of the webhooks failed for `given up 1`, `given up 2`, `waiting 1` and `waiting 2`. The target
 * answered 410 to the first two and failed for the others; then the second was replayed.
 */

export interface FormerStore {
  subscriber: Issued
  publisher: Issued
  institution: string
  livestream: string
  entries: [key: string, stored: Buffer][]
}

export function readFormerStore(driver: Driver): FormerStore {
  const [about = '', ...lines] = readFileSync(
    projectFile(`test/former-release/${driver}.jsonl`),
    'utf8',
  ).split('\n')
  const entries = lines.filter(Boolean).map((line): FormerStore['entries'][number] => {
    const [key, stored] = JSON.parse(line)
    return [key, Buffer.from(stored, 'base64')]
  })
  return { ...JSON.parse(about), entries }
}

/** The same with work that is new, for endpoints at this address: the hub gives up what is some days old. */
export function withWorkFor(former: FormerStore, url: string): FormerStore {
  const now = Date.now()
  const entries = former.entries.map(([key, stored]): FormerStore['entries'][number] => {
    if (!/^(subscription|work|work-dead)\//.test(key)) return [key, stored]
    const known = JSON.parse(contentOf(stored).toString())
    const changed = {
      ...known,
      ...('url' in known && { url: url + new URL(known.url).pathname }),
      ...('enqueuedAt' in known && { enqueuedAt: now }),
      ...('givenUpAt' in known && { givenUpAt: new Date(now).toISOString() }),
    }
    return [key, encode(NaN, JSON.stringify(changed))]
  })
  return { ...former, entries }
}

/** What the data directory of a node of that release holds. */
export async function fillDirectory(dataDir: string, { entries }: FormerStore): Promise<void> {
  const db = new ClassicLevel<string, Buffer>(join(dataDir, 'store'), { valueEncoding: 'buffer' })
  for (const [key, stored] of entries) await db.put(key, stored)
  await db.close()
}

/** What the nodes of that release share. */
export async function fillRedis(client: Redis, { entries }: FormerStore): Promise<void> {
  const keys = formerKeysOf('hub:test')
  for (const [key, stored] of entries) {
    await client.hset(keys.values, key, stored)
    await client.zadd(keys.keys, 0, key)
  }
  const id = await client.xadd(keys.log, '*', 'writer', 'node 1')
  await client.hset(keys.head, 'id', id ?? '')
}
