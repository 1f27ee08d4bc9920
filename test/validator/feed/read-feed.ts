import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import { createFeedSource } from '../../../validator/feed/feed-source.ts'
import { createFeedFetch } from '../../../validator/feed/fetch-by-ca.ts'

/* Reads a feed once and prints the status. `read-feed.ts URL DIRECTORY [CA]` */
const [url = '', directory = '', ca] = process.argv.slice(2)
const store = await openEmbeddedStore(join(directory, 'child-store'))
const log = pino({ level: 'silent' })
const fetchImpl = createFeedFetch(ca === undefined ? undefined : () => readFileSync(ca, 'utf8'))
const options = { intervalMs: 60_000, store, log, clock: Date.now, fetchImpl }
const source = await createFeedSource({ source: url, ...options })
source.close()
await store.close()
process.stdout.write(JSON.stringify(source.status()))
