import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build, type Plugin } from 'esbuild'
import { bundle as bundlePages } from '../web/bundle.ts'
import { licensesOf, packagesOf } from '../web/licenses.ts'

// As esbuild names the files: without symbolic links.
const project = realpathSync(fileURLToPath(new URL('../', import.meta.url)))
const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))

/**
 * Makes what an installed hub runs, in `directory`: bundles of the node, of `hubctl` and of the hub for tests, and the
 * files that they read (docs/decisions, "The package is a bundle"). Resolves with the folders of all packages in them or beside
 * them.
 */
export async function bundle(directory: string): Promise<string[]> {
  const output = resolve(directory)
  const options = {
    ...bundled,
    outdir: output,
    plugins: [withoutDebug, inItsPlace({ url: urlHere, folder: folderHere })],
  }
  const [{ metafile }, pages] = await Promise.all([
    build({
      ...options,
      entryPoints: {
        server: 'server.ts',
        hubctl: 'cli/hubctl.ts',
        testing: 'testing.ts',
        config: 'config/config.ts',
      },
      chunkNames: '[name]-[hash]',
      splitting: true,
      metafile: true,
    }),
    bundlePages(join(output, 'web/public')),
    // What a node starts in a process or a thread of its own.
    build({
      ...options,
      entryPoints: [
        'delivery/plugins/driver-program.ts',
        'delivery/showing/senders/file-program.ts',
        'validator/feed/thread.ts',
      ],
      outbase: project,
    }),
    ...beside.map((path) => cp(join(project, path), join(output, path))),
    cp(join(swagger, 'static'), join(output, 'swagger-ui/static'), {
      recursive: true,
      filter: (path) => !path.endsWith('.map'),
    }),
  ])
  await writeFile(join(output, 'licenses.txt'), await licensesOf(metafile, project))
  const installed = Object.keys(manifest.dependencies).map((name) => join(project, 'node_modules', name))
  return [...(await packagesOf(metafile, project, installed)).keys(), ...pages]
}

/** Files that modules read beside them. */
const beside = ['config/sample-feed.json', ...scriptsIn('store/redis'), ...scriptsIn('admin/aedes-redis')]

const swagger = join(project, 'node_modules/@fastify/swagger-ui')

// All bundles lie in `directory` itself, so that each finds the other files from its own place.
const urlHere = (path: string) => `new URL(${JSON.stringify(path)}, import.meta.url).href`
const folderHere = (path: string) => `(__dirname + ${JSON.stringify(path)})`

/**
 * Modules find the files that lie beside them. In a folder of bundles, these files lie as in the repository. `url` and
 * `folder`: the expressions for a path in that folder, as the URL of a module and as the name of its folder.
 */
export function inItsPlace(at: { url(path: string): string; folder(path: string): string }): Plugin {
  return {
    name: 'in its place',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        if (path.includes('/node_modules/')) return undefined
        const url = at.url(relative(project, path).replace(/ts$/, 'js'))
        return { contents: (await readFile(path, 'utf8')).replaceAll('import.meta.url', url), loader: 'ts' }
      })
      // This package serves the files beside its code.
      onLoad({ filter: /\/@fastify\/swagger-ui\/(lib\/.*|index)\.js$/ }, async ({ path }) => {
        const [, file = ''] = path.split('/@fastify/swagger-ui/')
        const folder = at.folder(join('swagger-ui', dirname(file)))
        return { contents: (await readFile(path, 'utf8')).replaceAll('__dirname', folder), loader: 'js' }
      })
    },
  }
}

/**
 * Packages that call `debug` do so many times for each packet, and each call collects its arguments. A hub writes no
 * such output.
 */
const withoutDebug: Plugin = {
  name: 'without debug',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^debug$/ }, ({ path }) => ({ path, namespace: 'silent' }))
    onLoad({ filter: /^debug$/, namespace: 'silent' }, () => ({
      contents:
        'const silent = () => {}\nmodule.exports = () => silent\nmodule.exports.default = module.exports',
    }))
  },
}

/** How all bundles are made. */
export const bundled: BuildOptions = {
  absWorkingDir: project,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  legalComments: 'none', // in `licenses.txt`
  logLevel: 'warning',
  // Packages with native code, and the one that makes the pages of a node that runs from its sources.
  external: [...Object.keys(manifest.dependencies), 'esbuild'],
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

function scriptsIn(folder: string): string[] {
  const names = readdirSync(join(project, folder))
  return names.filter((name) => name.endsWith('.lua')).map((name) => join(folder, name))
}
