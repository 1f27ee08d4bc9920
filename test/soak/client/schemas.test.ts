import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { createTestHub } from '../../../testing.ts'
import { openClient } from '../../bridge-https/api.ts'
import { playing, station } from '../../events.ts'
import { projectFile } from '../../root.ts'
import { temporaryDirectory } from '../../start-hub.ts'

const run = promisify(execFile)

t.test('json-schema-to-typescript makes types of /schemas, and they hold what they say', async (t) => {
  const home = await temporaryDirectory(t)
  const hub = await createTestHub()
  t.teardown(hub.close)
  const caPath = join(home, 'ca.pem')
  await writeFile(caPath, hub.ca)
  const send = openClient(t, { httpsPort: hub.httpsPort, caPath })
  await mkdir(join(home, 'schemas'))
  for (const name of ['TrackEvent', 'Contributor', 'Service', 'Reference', 'MediaItem', 'EventPlugin']) {
    const { json } = await send('GET', `/schemas/${name}.json`)
    // A file of its own has no address that references would be relative to.
    await writeFile(join(home, `schemas/${name}.json`), JSON.stringify({ ...json, $id: undefined }))
  }
  const generator = projectFile('node_modules/json-schema-to-typescript/dist/src/cli.js')
  const folder = { cwd: join(home, 'schemas') }
  const { stdout } = await run(process.execPath, [generator, '-i', 'TrackEvent.json'], folder)
  await writeFile(join(home, 'event.ts'), stdout)
  await writeFile(
    join(home, 'use.ts'),
    [
      `import type { Contributor, TrackEvent } from './event.js'`,
      `export const event: TrackEvent = ${JSON.stringify(playing(station()))}`,
      `export const role: Contributor['role'] = 'choirleader'`,
      '// @ts-expect-error: the schema has no such type',
      `export const wrong: TrackEvent = { ...event, type: 'silence' }`,
      '// @ts-expect-error: an event has a title',
      'export const untitled: TrackEvent = { ...event, title: undefined }',
      '// @ts-expect-error: the schema is closed',
      `export const more: TrackEvent = { ...event, mood: 'calm' }`,
    ].join('\n'),
  )
  const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext']
  await run(projectFile('node_modules/.bin/tsc'), ['use.ts', ...options], { cwd: home })
  t.pass('it compiles')
})
