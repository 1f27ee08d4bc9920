import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { codeBlock, readPage } from '../../documentation.ts'
import { projectFile } from '../../root.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { words } from '../../words.ts'

const run = promisify(execFile)
const page = readPage('deployment.md')
const skip = existsSync(projectFile('.git')) ? false : 'NOT TESTED: this is no checkout'
const version = '9.8.7'
const tag = `v${version}`

/*
 * The files of a release, as docs/deployment.md says they are made and checked.
 */

t.test('a release is made, checked and made again, and its bytes are the same', { skip }, async (t) => {
  const repository = await tagged(t)
  const shell = (text: string, cwd = repository) =>
    run('bash', ['-ec', text.replaceAll('v3.0.0', tag)], { cwd, maxBuffer: 64 * 1024 * 1024 })
  const { stdout } = await shell(codeBlock(page, 'sh', 'openssl genpkey'))
  t.match(stdout, 'SHA256SUMS is signed')
  t.match(stdout, 'no build service vouches for it')
  const made = join(repository, 'release', tag)
  const files = await readdir(made)
  const expected = words(`
    SHA256SUMS SHA256SUMS.sig now-playing-hub-${version}.cdx.json now-playing-hub-${version}.tgz
    now-playing-hub-client-${version}.tgz provenance.intoto.json
  `)
  t.same(files, expected)

  const sum = codeBlock(page, 'sh', 'sha256sum --check SHA256SUMS\n')
  const verify = codeBlock(page, 'sh', 'openssl pkeyutl')
  await run('cp', ['hub-release.pem', made], { cwd: repository })
  t.match((await shell(sum, made)).stdout, 'now-playing-hub-9.8.7.tgz: OK')
  t.match((await shell(verify, made)).stdout, /Verified Successfully/)

  const statement = JSON.parse(await readFile(join(made, 'provenance.intoto.json'), 'utf8'))
  const { stdout: commit } = await shell(`git rev-parse ${tag}^{commit}`)
  t.match(statement, {
    _type: 'https://in-toto.io/Statement/v1',
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        externalParameters: { ref: `refs/tags/${tag}` },
        resolvedDependencies: [{ digest: { gitCommit: commit.trim() } }, { name: 'package-lock.json' }],
      },
      runDetails: { builder: { version: { node: process.versions.node } } },
    },
  })
  const sums = await readFile(join(made, 'SHA256SUMS'), 'utf8')
  for (const { name, digest } of statement.subject) t.ok(sums.includes(`${digest.sha256}  ${name}\n`), name)
  const { stdout: packed } = await run('tar', ['tzf', join(made, `now-playing-hub-${version}.tgz`)])
  t.match(packed, 'package/dist/server.js')
  t.notMatch(packed, 'stray', 'what is not in the tag is in no package')

  // `npm ci` is for those who have no checkout yet.
  const [, again = ''] = codeBlock(page, 'sh', '--out again').split('npm ci\n')
  const clone = join(made, 'clone')
  await shell(`git clone --quiet . ${clone}`)
  await symlink(projectFile('node_modules'), join(clone, 'node_modules'))
  await run('cp', [join(made, 'SHA256SUMS'), clone])
  const { stdout: checked } = await shell(`PATH=${await npmOfCheckout(t)}:$PATH\n${again}`, clone)
  t.match(checked, 'Nothing is signed')
  t.equal(checked.match(/: OK$/gm)?.length, 4, 'all files are the same')

  await writeFile(join(made, 'SHA256SUMS'), sums.replace('now-playing-hub-client', 'another'))
  await t.rejects(shell(verify, made), { code: 1 }, 'a signature is for these digests alone')
})

t.test('what does not fit together is refused, and nothing is made', { skip }, async (t) => {
  const repository = await tagged(t)
  // What `npm run release` runs: npm itself costs as much again.
  const release = (...args: string[]) =>
    run(process.execPath, ['--import=tsx', 'deploy/release.ts', ...args], { cwd: repository })
  await t.rejects(run('npm', ['run', '--silent', 'release'], { cwd: repository }), {
    code: 1,
    stderr: /^usage: /,
  })
  await t.rejects(release('--nonsense'), { code: 1, stderr: /^usage: / })
  await t.rejects(release('--upload-pack=x'), { code: 1, stderr: /^usage: / })
  await t.rejects(release('main'), { code: 1, stderr: 'main: expected a tag such as v3.0.0\n' })
  await t.rejects(release('v1.2.3'), {
    code: 1,
    stderr: /^v1\.2\.3: there is no such tag in this repository\n$/,
  })
  await run('git', ['tag', 'v9.8.8'], { cwd: repository })
  await t.rejects(release('v9.8.8'), {
    code: 1,
    stderr: /^v9\.8\.8: now-playing-hub has the version 9\.8\.7 there\n$/,
  })
  await replaceIn(repository, 'CHANGELOG.md', `## ${version} - 2026-03-01`, '## Unreleased')
  await commit(repository)
  await run('git', ['tag', '--force', tag], { cwd: repository })
  await t.rejects(release(tag), {
    code: 1,
    stderr: /expected "## 9\.8\.7 - <date>" first in CHANGELOG\.md, found "Unreleased"/,
  })
  await t.rejects(release(tag, '--key', 'nothing.pem'), {
    code: 1,
    stderr: /--key: nothing\.pem cannot be read/,
  })
  await t.rejects(release(tag, '--key', 'package.json'), {
    code: 1,
    stderr: /--key: expected an Ed25519 key in PEM/,
  })
  await mkdir(join(repository, 'there'))
  await t.rejects(release(tag, '--out', 'there'), { code: 1, stderr: /there is there already/ })
  t.same(await readdir(join(repository, 'there')), [])
  t.same(existsSync(join(repository, 'release')) ? await readdir(join(repository, 'release')) : [], [])
})

/**
 * A folder with an `npm` whose `npm ci` takes the packages that this checkout has: another installation from the same
 * lock file, made at another time, for a fifth of the processor time.
 */
async function npmOfCheckout(t: Test): Promise<string> {
  const folder = await temporaryDirectory(t)
  const { stdout: npm } = await run('bash', ['-c', 'command -v npm'])
  const packages = projectFile('node_modules')
  const script = [
    '#!/bin/sh',
    `[ "$1" = ci ] || exec ${npm.trim()} "$@"`,
    '# Links need one file system.',
    `cp --archive --link ${packages} . 2>/dev/null || exec cp --archive ${packages} .`,
  ]
  await writeFile(join(folder, 'npm'), script.join('\n'), { mode: 0o755 })
  return folder
}

/** A clone of the checkout with a tag of a release, and a file that is not in it. */
async function tagged(t: Test): Promise<string> {
  const repository = join(await temporaryDirectory(t), 'hub')
  await run('git', ['clone', '--quiet', projectFile(''), repository])
  await symlink(projectFile('node_modules'), join(repository, 'node_modules'))
  const { version: now } = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8'))
  for (const path of ['package.json', 'client/package.json', 'package-lock.json'])
    await replaceIn(repository, path, `"version": "${now}"`, `"version": "${version}"`)
  const changelog = await readFile(join(repository, 'CHANGELOG.md'), 'utf8')
  const dated = changelog.replace(/^## .*$/m, `## ${version} - 2026-03-01`)
  await writeFile(join(repository, 'CHANGELOG.md'), dated)
  await commit(repository)
  await run('git', ['tag', tag], { cwd: repository })
  await writeFile(join(repository, 'docs/stray.md'), 'not in the tag')
  return repository
}

async function replaceIn(repository: string, path: string, from: string, to: string): Promise<void> {
  const file = join(repository, path)
  await writeFile(file, (await readFile(file, 'utf8')).replaceAll(from, to))
}

async function commit(cwd: string): Promise<void> {
  const who = words(`-c user.name=tester -c user.email=tester@radio.example -c core.hooksPath=/dev/null`)
  await run('git', [...who, 'commit', '--quiet', '--all', '--message=chore: a release'], { cwd })
}
