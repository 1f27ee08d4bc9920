import { readdirSync } from 'node:fs'
import { cp, readFile, rm } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type BuildOptions, build, type Plugin } from 'esbuild'
import { bundle } from '../web/bundle.ts'
import { root } from './root.ts'

/*
 * Bundles the tests, and the programs that tests start, into `.compiled/`: docs/decisions, "Tests run bundled".
 * esbuild does not check types: `npm run check` does.
 */

const output = join(root, '.compiled')

/** Programs that tests start as separate processes, besides the node. */
const programs = [
  'cli/hubctl.ts',
  'delivery/plugins/driver-program.ts',
  'test/run.ts',
  'test/test-hub-program.ts',
  'test/store/writer.ts',
  'test/uncaught-errors.ts',
  'test/validator/feed/read-feed.ts',
  'validator/feed/thread.ts',
  'bench/bench.ts',
  'bench/usage.ts',
  'bench/attacks/attacker.ts',
  'bench/load/crowd.ts',
  'bench/load/library-publisher.ts',
  'bench/load/pair.ts',
  'bench/load/publishers.ts',
  'bench/peers/aedes-redis-process.ts',
  'bench/peers/bare-sockets-process.ts',
  'bench/peers/floor-process.ts',
  'bench/peers/plain-aedes-process.ts',
  'bench/peers/validating-client.ts',
]

/**
 * Gives each module the `import.meta.url` that the module would have outside of the bundle. With the bundle's URL, a
 * module would look for its files in the wrong folder.
 */
const inItsPlace: Plugin = {
  name: 'in its place',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      if (path.includes('/node_modules/')) return undefined
      const url = pathToFileURL(join(output, relative(root, path).replace(/ts$/, 'js')))
      const source = await readFile(path, 'utf8')
      return { contents: source.replaceAll('import.meta.url', JSON.stringify(url)), loader: 'ts' }
    })
  },
}

/** Gives this package the `__dirname` that it would have outside of the bundle: it serves the files beside its code. */
const swaggerInItsPlace: Plugin = {
  name: 'swagger in its place',
  setup({ onLoad }) {
    onLoad({ filter: /\/@fastify\/swagger-ui\/(lib\/.*|index)\.js$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8')
      return { contents: source.replaceAll('__dirname', JSON.stringify(dirname(path))), loader: 'js' }
    })
  },
}

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

const options: BuildOptions = {
  absWorkingDir: root,
  outdir: output,
  outbase: root,
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  sourcemap: true,
  sourcesContent: false,
  logLevel: 'warning',
  external: apart,
  plugins: [inItsPlace, swaggerInItsPlace],
  alias: { 'async-hook-domain': './test/uncaught.ts' },
  // Bundled CommonJS packages use these names, which ES modules do not have.
  banner: {
    js: [
      `import { createRequire as requireOf } from 'node:module'`,
      `import { fileURLToPath as fileOf } from 'node:url'`,
      'const require = requireOf(import.meta.url)',
      'const __filename = fileOf(import.meta.url)',
      `const __dirname = fileOf(new URL('.', import.meta.url))`,
    ].join('\n'),
  },
}

await rm(output, { recursive: true, force: true })
// Tests share keys that sign tokens. Each bundling removes the keys, so that the tests make new ones.
await rm(join(root, '.tap/signing-keys'), { recursive: true, force: true })
await Promise.all([
  // The node gets its own bundle. Otherwise code shared with tests would be split into a hundred files.
  build({ ...options, entryPoints: ['server.ts'], chunkNames: 'server/[name]-[hash]' }),
  build({
    ...options,
    entryPoints: [...programs, ...testsBelow('test')],
    chunkNames: 'shared/[name]-[hash]',
  }),
  bundle(join(output, 'web/public')),
])
await cp(join(root, 'config/sample-feed.json'), join(output, 'config/sample-feed.json'))

function testsBelow(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.test.ts')).map((name) => join(folder, name))
}
