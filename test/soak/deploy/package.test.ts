import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { connect, connectPublisher } from '../../clients.ts'
import { codeBlock, readPage, startProgram } from '../../documentation.ts'
import { playing, station } from '../../events.ts'
import { installedPackage, nodeRelease } from '../../installed-package.ts'
import { projectFile } from '../../root.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { issue, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'
import { folderWithClient } from '../client/client-folder.ts'

const run = promisify(execFile)
const manifest = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'))

/*
 * Other tests start a bundled node. These start a node as docs/deployment.md installs it.
 */

/** The oldest release of Node.js that the hub takes, and one of each later line with long-term support. */
const nodeVersions = ['20.19.0', '22.23.3', '24.21.0', '26.12.1']

const livestream = station()
const institution = livestream.institution.id

t.test('what was tested is what is installed, without asking a registry', async (t) => {
  t.strictSame(versionsIn(await installedPackage()), shippedVersions())
  const licenses = await readFile(join(await installedPackage(), 'dist/licenses.txt'), 'utf8')
  for (const name of ['aedes', 'fastify', 'ioredis', 'nodemailer']) t.match(licenses, `\n${name}\n\n`, name)
  // In the bundle that mqtt.js is itself.
  for (const notice of [/\nmqtt-packet\n\n/, /\nbl\n\n/, /ieee754\. BSD-3-Clause License/])
    t.match(licenses, notice)
  t.ok(licenses.split('\n----\n').length > 100)
})

t.test(
  'the bill of materials names what is in the package, and nothing that only builds or tests it',
  async (t) => {
    const sbom = JSON.parse(await readFile(join(await installedPackage(), 'dist/sbom.cdx.json'), 'utf8'))
    t.match(sbom, {
      bomFormat: 'CycloneDX',
      metadata: { component: { name: manifest.name, version: manifest.version } },
    })
    const named: string[] = sbom.components.map(({ name }: { name: string }) => name)
    for (const name of ['aedes', 'classic-level', 'fastify', 'ioredis', 'preact', '@fastify/swagger-ui'])
      t.ok(named.includes(name), name)
    for (const name of ['tap', 'typescript', '@biomejs/biome', 'esbuild', 'playwright-core'])
      t.notOk(named.includes(name), name)
    const licensed = await readFile(join(await installedPackage(), 'dist/licenses.txt'), 'utf8')
    const missing = licensed.split('\n----\n\n').map((part) => part.slice(0, part.indexOf('\n')))
    t.same(
      missing.filter((name) => !named.includes(name.replace(/^.*node_modules\//, ''))),
      [],
    )
    for (const { name, hashes } of sbom.components) t.match(hashes, [{ alg: 'SHA-512' }], name)
    const refs = new Set(sbom.dependencies.map(({ ref }: { ref: string }) => ref))
    for (const { dependsOn } of sbom.dependencies) for (const ref of dependsOn) t.ok(refs.has(ref), ref)
  },
)

onEachStore('an installed node starts, distributes an event, and ends', async (t, store) => {
  await distributes(t, store, {})
})

for (const version of nodeVersions) {
  t.test(`an installed node does so on Node.js ${version}`, async (t) => {
    await distributes(t, {}, { node: await nodeRelease(version) })
  })
}

t.test('an installed package gives programs a hub for their tests, with its types', async (t) => {
  const home = await temporaryDirectory(t)
  await mkdir(join(home, 'node_modules'))
  await symlink(await installedPackage(), join(home, 'node_modules/now-playing-hub'))
  await writeFile(join(home, 'package.json'), '{ "type": "module" }')
  const lines = [
    `import { createTestHub, type TestLogin } from 'now-playing-hub/testing'`,
    'const hub = await createTestHub()',
    'const { username }: TestLogin = await hub.addPublisher()',
    'console.log(username)',
    'await hub.close()',
  ]
  await writeFile(join(home, 'test.ts'), lines.join('\n'))
  const types = ['--strict', '--types', 'node', '--typeRoots', projectFile('node_modules/@types')]
  for (const modules of ['nodenext', 'preserve']) {
    const options = ['--target', 'es2022', '--module', modules, '--outDir', 'compiled', ...types]
    await run(projectFile('node_modules/.bin/tsc'), ['test.ts', ...options], { cwd: home })
    const { stdout } = await run(process.execPath, ['compiled/test.js'], { cwd: home })
    t.match(stdout, /^pub-test-\d+\n$/, modules)
  }
})

t.test('the test that docs/clients/javascript.md shows passes as it stands there', async (t) => {
  const folder = await folderWithClient(t)
  await symlink(await installedPackage(), join(folder, 'node_modules/now-playing-hub'))
  const documented = codeBlock(readPage('clients/javascript.md'), 'js', 'createTestHub')
  await writeFile(join(folder, 'publish.test.mjs'), documented)
  const env = { PATH: process.env.PATH ?? '' }
  const test = startProgram(t, [process.execPath, '--test', '--test-reporter=tap', 'publish.test.mjs'], {
    cwd: folder,
    env,
  })
  t.equal(await test.ended, 0, test.lines.join('\n'))
  t.ok(test.lines.includes('# pass 1'))
})

async function distributes(t: Test, store: Record<string, string>, program: { node?: string }) {
  const server = join(await installedPackage(), 'dist/server.js')
  const hub = await spawnHub(t, await temporaryDirectory(t), store, { server, ...program })
  const app = await connect(t, hub, await issue(hub, { role: 'subscriber', filters: ['radio/#'] }))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const login = await issue(hub, { role: 'publisher', institutions: [institution] })
  const publisher = await connectPublisher(t, hub, login, institution)
  t.match(await publisher.publish(playing(livestream, { title: 'installed' })), { outcome: 'published' })
  t.match((await app.received.until(() => true)).json, { title: 'installed' })
  t.equal(await hub.stop('SIGTERM'), 0)
}

/** Path → version of each package that the lock file has and the hub needs where it runs. */
function shippedVersions(): Record<string, string> {
  const { packages } = JSON.parse(readFileSync(projectFile('package-lock.json'), 'utf8'))
  const found = new Map<string, string>()
  // Not by the flags `dev`: the client is a workspace, and its packages are not the hub's.
  const add = (from: string) => {
    const { dependencies, optionalDependencies } = packages[from]
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const path = placesOf(name, from).find((place) => place in packages)
      if (path === undefined || found.has(path)) continue
      found.set(path, packages[path].version)
      add(path)
    }
  }
  add('')
  return sorted([...found], (entry) => entry)
}

/** Where Node.js looks for a package, the nearest folder first. */
function placesOf(name: string, from: string): string[] {
  const place = `${from === '' ? '' : `${from}/`}node_modules/${name}`
  if (from === '') return [place]
  const end = from.lastIndexOf('node_modules/')
  return [place, ...placesOf(name, from.slice(0, Math.max(end - 1, 0)))]
}

/** Path → version of each package in the folders `node_modules` below a folder. */
function versionsIn(folder: string): Record<string, string> {
  const found: [string, string][] = []
  const look = (path: string) => {
    const modules = join(folder, path, 'node_modules')
    if (!existsSync(modules)) return
    const names = readdirSync(modules).flatMap((name) =>
      name.startsWith('@') ? readdirSync(join(modules, name)).map((scoped) => `${name}/${scoped}`) : name,
    )
    for (const name of names.filter((name) => !name.startsWith('.'))) {
      const inside = join(path, 'node_modules', name)
      const { version } = JSON.parse(readFileSync(join(folder, inside, 'package.json'), 'utf8'))
      found.push([inside, version])
      look(inside)
    }
  }
  look('')
  return sorted(found, (entry) => entry)
}

function sorted<T>(all: readonly T[], entryOf: (item: T) => [string, string]): Record<string, string> {
  return Object.fromEntries(all.map(entryOf).sort(([a], [b]) => (a < b ? -1 : 1)))
}
