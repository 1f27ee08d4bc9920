import { readdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { bundle, bundled, inItsPlace } from '../deploy/bundle.ts'
import { root } from './root.ts'

/*
 * Bundles the tests, and the programs that tests start, into `.compiled/`: docs/decisions, "Tests run bundled".
 * esbuild does not check types: `npm run check` does.
 */

const output = join(root, '.compiled')

/** Programs that tests start as separate processes, besides the node, and what such a process imports by `moduleOf`. */
const programs = [
  'test/run.ts',
  'test/test-hub-program.ts',
  'test/store/writer.ts',
  'test/soak/nodes/crowd.ts',
  'test/uncaught-errors.ts',
  'certs/development.ts',
  'client/outbox.ts',
  'telemetry/log.ts',
  'test/validator/feed/read-feed.ts',
  'bench/bench.ts',
  'bench/touched.ts',
  'bench/usage.ts',
  'bench/attacks/attacker.ts',
  'bench/load/crowd.ts',
  'bench/load/library-publisher.ts',
  'bench/load/pair.ts',
  'bench/load/posters.ts',
  'bench/load/publishers.ts',
  'bench/peers/aedes-redis-process.ts',
  'bench/peers/bare-fastify-process.ts',
  'bench/peers/bare-sockets-process.ts',
  'bench/peers/bare-webhooks-process.ts',
  'bench/peers/floor-process.ts',
  'bench/peers/plain-aedes-process.ts',
  'bench/peers/validating-client.ts',
]

/**
 * Packages that are not bundled:
 * - The first reads files beside its code.
 * - From `esbuild` to `nodemailer`: CommonJS packages that `import()` loads. In a bundle, their exports would have no
 *   names.
 * - The others are large, and few tests use them.
 */
const apart = [
  'classic-level',
  'esbuild',
  'aedes-persistence-redis',
  'mqemitter-redis',
  'ioredis',
  'nodemailer',
  'axe-core',
  'playwright-core',
  'typescript',
  '@asyncapi/parser',
  '@seriousme/openapi-schema-validator',
]

/** Bundled tests lie in many folders: what they find beside them, they find in `.compiled`. */
const inOutput = inItsPlace({
  url: (path) => JSON.stringify(pathToFileURL(join(output, path))),
  folder: (path) => JSON.stringify(join(output, path)),
})

await rm(output, { recursive: true, force: true })
// Tests share keys that sign tokens. Each bundling removes the keys, so that the tests make new ones.
await rm(join(root, '.tap/signing-keys'), { recursive: true, force: true })
await Promise.all([
  bundle(output),
  build({
    ...bundled,
    entryPoints: [...programs, ...testsBelow('test')],
    outdir: output,
    outbase: root,
    splitting: true,
    chunkNames: 'shared/[name]-[hash]',
    sourcemap: true,
    sourcesContent: false,
    external: apart,
    plugins: [inOutput],
    alias: { 'async-hook-domain': './test/uncaught.ts' },
  }),
])

function testsBelow(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.test.ts')).map((name) => join(folder, name))
}
