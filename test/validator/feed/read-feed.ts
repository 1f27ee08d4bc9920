import { join } from 'node:path'
import pino from 'pino'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import { createFeedSource } from '../../../validator/feed/feed-source.ts'

/* Reads a feed once and prints the status. `read-feed.ts URL DIRECTORY` */
const [url = '', directory = ''] = process.argv.slice(2)
const store = await openEmbeddedStore(join(directory, 'child-store'))
const log = pino({ level: 'silent' })
const source = await createFeedSource({ source: url, intervalMs: 60_000, store, log, clock: Date.now })
source.close()
await store.close()
process.stdout.write(JSON.stringify(source.status()))
