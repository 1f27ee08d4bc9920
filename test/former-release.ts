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
 * The files in `former-release/` are stores of the release before the journal (commit 03cbc76). The node on LevelDB
 * ended with a stop, the node on Redis with kill -9. The first line of a file describes the store. Each further line
 * has a key and a stored value (event time included, base64).
 *
 * What the clients left:
 * - `app` (`radio/#`, QoS 1): four unacknowledged messages, the first of them a retained value. Then fourteen more came
 *   while `app` was offline.
 * - `reports`: two reports of its institution while `reports` was offline.
 * - `twice`: an event at QoS 2 with packet identifier 7. The node has received the event, but the client has not
 *   released it.
 *
 * Only the webhook records come from another node, of commit 9c1e16f. They have the same form as the rest. That node
 * had two webhooks for the livestream, and the plugin target `dts`:
 * - Every delivery of the events `given up 1`, `given up 2`, `waiting 1` and `waiting 2` failed.
 * - The target answered 410 to the two events `given up`. Then `given up 2` was replayed to the target.
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

/** Returns the store with its webhooks moved to `url` and its work dated now: the hub gives up old work. */
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

/** Writes the entries into `dataDir`, in the form of that release on LevelDB. */
export async function fillDirectory(dataDir: string, { entries }: FormerStore): Promise<void> {
  const db = new ClassicLevel<string, Buffer>(join(dataDir, 'store'), { valueEncoding: 'buffer' })
  for (const [key, stored] of entries) await db.put(key, stored)
  await db.close()
}

/** Writes the entries into Redis in the form of that release. */
export async function fillRedis(client: Redis, { entries }: FormerStore): Promise<void> {
  const keys = formerKeysOf('hub:test')
  for (const [key, stored] of entries) {
    await client.hset(keys.values, key, stored)
    await client.zadd(keys.keys, 0, key)
  }
  const id = await client.xadd(keys.log, '*', 'writer', 'node 1')
  await client.hset(keys.head, 'id', id ?? '')
}
