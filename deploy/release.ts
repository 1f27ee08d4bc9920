import { execFile } from 'node:child_process'
import { createHash, createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs, promisify } from 'node:util'

/*
 * `npm run release -- TAG`: makes the files of a release from a clean clone of the tag. The same tag, Node.js and npm give
 * the same bytes.
 */

const run = promisify(execFile)

/** What the user must put right. */
class Wrong extends Error {}

/** What is known of a package from its `package.json`. */
interface Manifest {
  name: string
  version: string
  homepage: string
  repository: { url: string }
}

async function main(): Promise<void> {
  const { tag, out, key } = await readTyped()
  const home = await mkdtemp(join(tmpdir(), 'hub-release-'))
  try {
    const clone = join(home, 'clone')
    const commit = await cloneTag(tag, clone)
    const manifest = await checkVersion(clone, tag)
    const files = await build(clone, join(home, 'files'), manifest)
    const statement = await provenanceOf({ tag, commit, clone, files, manifest })
    await mkdir(out)
    for (const file of files) await cp(join(home, 'files', file), join(out, file))
    await writeFile(join(out, statementName), statement)
    const sums = await Promise.all(
      [...files, statementName].map(async (file) => `${await sha256(join(out, file))}  ${file}\n`),
    )
    await writeFile(join(out, 'SHA256SUMS'), sums.join(''))
    if (key) await writeFile(join(out, 'SHA256SUMS.sig'), sign(null, Buffer.from(sums.join('')), key))
    console.log(`${out} has ${tag} (commit ${commit}): ${files.join(', ')}, ${statementName}, SHA256SUMS`)
    console.log(
      key
        ? 'SHA256SUMS is signed, and with it the digest of each file and the statement of provenance. The tag is not checked.'
        : 'Nothing is signed: the digests say that files are whole, not who made them. --key FILE signs.',
    )
    console.log(
      'The statement of provenance is the word of whoever ran this program: no build service vouches for it.',
    )
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

const statementName = 'provenance.intoto.json'
const usage = 'usage: npm run release -- TAG [--out DIRECTORY] [--key FILE]'

async function readTyped(): Promise<{ tag: string; out: string; key: KeyObject | undefined }> {
  const options = { out: { type: 'string' }, key: { type: 'string' } } as const
  const { values, positionals } = parseTyped()
  const [tag, ...more] = positionals
  if (tag === undefined || more.length > 0) throw new Wrong(usage)
  if (!/^v\d+\.\d+\.\d+[\w.-]*$/.test(tag)) throw new Wrong(`${tag}: expected a tag such as v3.0.0`)
  const out = resolve(values.out ?? join('release', tag))
  if (existsSync(out))
    throw new Wrong(`${out} is there already: remove it, or name another directory with --out`)
  await mkdir(join(out, '..'), { recursive: true })
  return { tag, out, key: values.key === undefined ? undefined : await readKey(values.key) }

  function parseTyped() {
    try {
      return parseArgs({ options, allowPositionals: true })
    } catch {
      throw new Wrong(usage)
    }
  }
}

async function readKey(path: string): Promise<KeyObject> {
  const text = await readFile(path).catch(() => {
    throw new Wrong(`--key: ${path} cannot be read`)
  })
  try {
    const key = createPrivateKey(text)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // The message below says what is expected, and nothing of the key.
  }
  throw new Wrong(`--key: expected an Ed25519 key in PEM, without a passphrase, in ${path}`)
}

/** Clones what the tag names, and nothing that only lies in this directory. Returns the commit. */
async function cloneTag(tag: string, clone: string): Promise<string> {
  await run('git', ['rev-parse', '--verify', '--quiet', `refs/tags/${tag}^{commit}`]).catch(() => {
    throw new Wrong(`${tag}: there is no such tag in this repository`)
  })
  const { stdout: repository } = await run('git', ['rev-parse', '--path-format=absolute', '--git-common-dir'])
  await run('git', ['clone', '--quiet', '--depth=1', `--branch=${tag}`, `file://${repository.trim()}`, clone])
  const { stdout: commit } = await run('git', ['rev-parse', 'HEAD'], { cwd: clone })
  return commit.trim()
}

/** Checks that the tag, both packages and the changelog have the same version. */
async function checkVersion(clone: string, tag: string): Promise<Manifest> {
  const [manifest, client] = await Promise.all(
    ['package.json', 'client/package.json'].map(
      async (path): Promise<Manifest> => JSON.parse(await readFile(join(clone, path), 'utf8')),
    ),
  )
  if (!manifest || !client) throw new Error('no package')
  for (const { name, version } of [manifest, client])
    if (tag !== `v${version}`) throw new Wrong(`${tag}: ${name} has the version ${version} there`)
  const changelog = await readFile(join(clone, 'CHANGELOG.md'), 'utf8')
  const [, newest = 'none'] = /^## (.+)$/m.exec(changelog) ?? []
  if (!/^\d{4}-\d\d-\d\d$/.test(newest.replace(`${manifest.version} - `, '')))
    throw new Wrong(
      `${tag}: expected "## ${manifest.version} - <date>" first in CHANGELOG.md, found "${newest}"`,
    )
  return manifest
}

const install = ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
const pack = ['npm', 'pack', '--silent', '--pack-destination']
const packClient = [...pack.slice(0, 3), '--workspace=client', '--pack-destination']

/** Packs both packages. Returns the names of the files in `destination`. */
async function build(clone: string, destination: string, { name, version }: Manifest): Promise<string[]> {
  await mkdir(destination)
  for (const command of [install, [...pack, destination], [...packClient, destination]]) {
    const [program = '', ...args] = command
    await run(program, args, { cwd: clone, env: environment(), maxBuffer: 64 * 1024 * 1024 })
  }
  await cp(join(clone, 'dist/sbom.cdx.json'), join(destination, `${name}-${version}.cdx.json`))
  return (await readdir(destination)).sort()
}

/** Nothing of it may change the files. */
function environment(): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env
  const npm = Object.entries(process.env).filter(([name]) =>
    /^(npm_config_(registry|cache|userconfig|cafile)|https?_proxy|no_proxy|node_extra_ca_certs)$/i.test(name),
  )
  return { ...Object.fromEntries(npm), PATH, HOME, TZ: 'UTC', LC_ALL: 'C' }
}

/** The statement of provenance: an in-toto Statement v1 with the SLSA predicate v1. It has no times, which would differ. */
async function provenanceOf(of: {
  tag: string
  commit: string
  clone: string
  files: readonly string[]
  manifest: Manifest
}): Promise<string> {
  const { tag, commit, clone, files, manifest } = of
  const { stdout: npm } = await run('npm', ['--version'])
  const digest = async (path: string) => ({ sha256: await sha256(path) })
  const folder = join(clone, '../files')
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: await Promise.all(
      files.map(async (name) => ({ name, digest: await digest(join(folder, name)) })),
    ),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `${manifest.homepage}docs/deployment.md#releases`,
        externalParameters: { repository: manifest.repository.url, ref: `refs/tags/${tag}` },
        internalParameters: { commands: [install, pack, packClient].map((command) => command.join(' ')) },
        resolvedDependencies: [
          { uri: `${manifest.repository.url}@refs/tags/${tag}`, digest: { gitCommit: commit } },
          { name: 'package-lock.json', digest: await digest(join(clone, 'package-lock.json')) },
        ],
      },
      runDetails: {
        builder: {
          id: `${manifest.homepage}docs/deployment.md#by-hand`,
          version: {
            node: process.versions.node,
            npm: npm.trim(),
            platform: `${process.platform} ${process.arch}`,
          },
        },
      },
    },
  }
  return `${JSON.stringify(statement, null, 2)}\n`
}

async function sha256(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex')
}

// The modes of files are in the packages.
process.umask(0o022)
await main().catch((error: unknown) => {
  if (!(error instanceof Wrong)) throw error
  console.error(error.message)
  process.exitCode = 1
})
