import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { addUser, openApi, password } from '../../bridge-https/api.ts'
import { codeBlock, readPage, startProgram } from '../../documentation.ts'
import { institutions, playing, station } from '../../events.ts'
import { projectFile } from '../../root.ts'
import { startTestHub } from '../../start-hub.ts'
import { folderWithClient } from './client-folder.ts'
import { pythons } from './python-programs.ts'

/*
 * Runs the programs with the library of docs/clients/javascript.md and docs/publishers.md as they stand there, with the
 * package as it is published.
 */

const [own = ''] = institutions
const page = readPage('clients/javascript.md')

t.test('the publisher of the page publishes, says what to mend, and ends', async (t) => {
  const hub = await startTestHub(t)
  const folder = await folderWithClient(t)
  const program = codeBlock(page, 'js', 'process.argv')
  await writeFile(join(folder, 'publish.mjs'), program)
  await writeFile(join(folder, 'mistake.mjs'), program.replace('length: 187', 'length: 0'))
  const { username, password } = await hub.publisher([own])
  const env = {
    PATH: process.env.PATH ?? '',
    HOST: 'localhost',
    PORT: `${hub.mqttPort}`,
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
  t.match(refused.complaints, ['refused: invalid', /^exclusiveMinimum\.openapi\.validation \.length /])
  const wrong = { ...env, PUB_PASSWORD: 'wrong' }
  const denied = startProgram(t, [process.execPath, 'publish.mjs'], { cwd: folder, env: wrong })
  t.equal(await denied.ended, 1)
  t.ok(
    denied.lines.some((line) => line.startsWith('login.refused ')),
    denied.lines.join('\n'),
  )
})

t.test('the short programs for publishers say what became of an event', async (t) => {
  const hub = await startTestHub(t)
  const folder = await folderWithClient(t)
  const login = await hub.publisher([own])
  const block = (language: string) =>
    codeBlock(readPage('publishers.md'), language, language === 'js' ? 'EventRefused' : 'sys.argv')
  await writeFile(join(folder, 'publish.mjs'), block('js'))
  await writeFile(join(folder, 'publish.py'), block('python'))
  const programs = [[process.execPath, 'publish.mjs'], ...pythons.map(({ python }) => [python, 'publish.py'])]
  for (const [file, event, secret, code, text] of [
    ['right.json', playing(station()), login.password, 0, /^published \[\]$/],
    ['wrong.json', playing(station(), { length: 0 }), login.password, 1, /^invalid .*\.length/ms],
    ['right.json', playing(station()), 'wrong', 1, /^login\.refused /m],
  ] as const) {
    await writeFile(join(folder, file), JSON.stringify(event))
    const env = {
      PATH: process.env.PATH ?? '',
      PYTHONPATH: projectFile('client/python'),
      HOST: 'localhost',
      PORT: `${hub.mqttPort}`,
      CA: hub.caPath,
      INSTITUTION: own,
      PUB_USER: login.username,
      PUB_PASSWORD: secret,
      PYTHONDONTWRITEBYTECODE: '1',
    }
    for (const program of programs) {
      const run = startProgram(t, [...program, file], { cwd: folder, env })
      t.equal(await run.ended, code, program.join(' '))
      t.match((code === 0 ? run.lines : run.complaints).join('\n'), text)
    }
  }
})

t.test('the stations of the pages run on over refusals, and tell what the last run has left', async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.publisher([own])
  const programs = [
    { command: [process.execPath, 'station.mjs'], text: codeBlock(page, 'js', 'createInterface') },
    ...pythons.map(({ python }) => ({
      command: [python, 'station.py'],
      text: codeBlock(readPage('clients/python.md'), 'python', 'sys.stdin'),
    })),
  ]
  for (const { command, text } of programs) {
    const folder = await folderWithClient(t)
    await writeFile(join(folder, command[1] ?? ''), text)
    const env = {
      PATH: process.env.PATH ?? '',
      PYTHONPATH: projectFile('client/python'),
      HOST: 'localhost',
      PORT: '1',
      CA: hub.caPath,
      INSTITUTION: own,
      PUB_USER: login.username,
      PUB_PASSWORD: login.password,
      PYTHONDONTWRITEBYTECODE: '1',
    }
    const named = (item: string, fields = {}) => playing(station(), { ...fields, playlistItemId: item })
    const lines = (events: object[]) => events.map((event) => `${JSON.stringify(event)}\n`).join('')
    const away = startProgram(t, command, { cwd: folder, env })
    away.write(lines([named('good'), named('broken', { length: 0 })]))
    while (!/broken/.test(await readFile(join(folder, 'station.outbox'), 'utf8').catch(() => ''))) {
      await away.line(/./)
    }
    away.kill()
    await away.ended
    const back = startProgram(t, command, { cwd: folder, env: { ...env, PORT: `${hub.mqttPort}` } })
    await back.line(/^published good/)
    t.ok(back.complaints.some((line) => line.startsWith('invalid broken invalid: .length ')))
    back.write(`no event\n${lines([named('wrong', { length: 0 }), named('right')])}`)
    await back.line(/^published right/)
    await back.line(/^invalid wrong /)
    await back.line(/^no (JSON|event): /)
    back.end()
    t.equal(await back.ended, 0)
  }
})

t.test('the lines about the outbox and about HTTPS work', async (t) => {
  const hub = await startTestHub(t)
  const folder = await folderWithClient(t)
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
${codeBlock(page, 'js', '/var/lib/studio').replace('/var/lib/studio', folder)}
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
