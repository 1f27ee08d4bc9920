import { execFile } from 'node:child_process'
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { addUser, openApi, password } from '../../bridge-https/api.ts'
import { codeBlock, readPage, startProgram } from '../../documentation.ts'
import { institutions, playing, station } from '../../events.ts'
import { projectFile } from '../../root.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

/*
 * Runs the programs of docs/clients/javascript.md as they stand there, with the package as it is published.
 */

const [own = ''] = institutions
const page = readPage('clients/javascript.md')

t.test('the publisher of the page publishes, says what to mend, and ends', async (t) => {
  const hub = await startTestHub(t)
  const folder = await folderWithPackage(t)
  const program = codeBlock(page, 'js', 'process.argv')
  await writeFile(join(folder, 'publish.mjs'), program)
  await writeFile(join(folder, 'mistake.mjs'), program.replace('length: 187', 'length: 0'))
  const { username, password } = await hub.publisher([own])
  const env = {
    PATH: process.env.PATH ?? '',
    URL: `mqtts://localhost:${hub.mqttPort}`,
    CA: hub.caPath,
    INSTITUTION: own,
    PUB_USER: username,
    PUB_PASSWORD: password,
  }
  const published = startProgram(t, [process.execPath, 'publish.mjs'], { cwd: folder, env })
  t.equal(await published.ended, 0)
  t.match(published.lines, [/^published \d+$/])
  const refused = startProgram(t, [process.execPath, 'mistake.mjs'], { cwd: folder, env })
  t.equal(await refused.ended, 1)
  t.match(refused.lines, ['refused: invalid', /^exclusiveMinimum\.openapi\.validation \.length /])
  const wrong = { ...env, PUB_PASSWORD: 'wrong' }
  const denied = startProgram(t, [process.execPath, 'publish.mjs'], { cwd: folder, env: wrong })
  t.equal(await denied.ended, 1)
  t.ok(
    denied.lines.some((line) => line.startsWith('login.refused ')),
    denied.lines.join('\n'),
  )
})

t.test('the lines about the outbox and about HTTPS work', async (t) => {
  const hub = await startTestHub(t)
  const folder = await folderWithPackage(t)
  const { email } = await addUser(hub, await openApi(t, hub), own, { permissions: ['publish'] })
  const login = await hub.publisher([own])
  const options = { ...login, url: `mqtts://localhost:${hub.mqttPort}`, ca: hub.caPath, institution: own }
  await writeFile(
    join(folder, 'both.mjs'),
    `import { connectPublisher, createHttpsPublisher } from 'now-playing-hub-client'
const [CA, EMAIL, PASSWORD] = ${JSON.stringify([hub.caPath, email, password])}
const event = ${JSON.stringify(playing(station()))}
const { username, password, url, ca, institution } = ${JSON.stringify(options)}
const options = { username, password, url, ca, institution }
{
${codeBlock(page, 'js', 'restored').replace('/var/lib/studio', folder)}
console.log((await publisher.publish(event)).outcome)
await publisher.close()
}
${codeBlock(page, 'js', 'createHttpsPublisher').replace('8443', `${hub.httpsPort}`)}
console.log(statuses, id)
`,
  )
  const both = startProgram(t, [process.execPath, 'both.mjs'], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '' },
  })
  t.equal(await both.ended, 0, both.lines.join('\n'))
  t.match(both.lines, ['published', /^\{ published: 1, blocked: 0, failed: 0 \} \d+$/])
})

/** A folder in which somebody has installed the package. */
async function folderWithPackage(t: Test): Promise<string> {
  const folder = await temporaryDirectory(t)
  const installed = join(folder, 'node_modules/now-playing-hub-client')
  await mkdir(installed, { recursive: true })
  const settings = ['-p', projectFile('client/tsconfig.build.json'), '--outDir', join(installed, 'dist')]
  await promisify(execFile)(projectFile('node_modules/.bin/tsc'), settings)
  await copyFile(projectFile('client/package.json'), join(installed, 'package.json'))
  await symlink(projectFile('node_modules/mqtt'), join(folder, 'node_modules/mqtt'))
  return folder
}
