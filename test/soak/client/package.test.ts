import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { createTestHub } from '../../../testing.ts'
import { codeBlock, readPage, startProgram } from '../../documentation.ts'
import { playing, station } from '../../events.ts'
import { projectFile } from '../../root.ts'
import { temporaryDirectory } from '../../start-hub.ts'

const run = promisify(execFile)

const { version } = JSON.parse(readFileSync(projectFile('client/package.json'), 'utf8'))

t.test(
  'the packed client compiles in programs of others, publishes and reads there, as documented',
  async (t) => {
    const home = await temporaryDirectory(t)
    await run('npm', ['pack', '--pack-destination', home], { cwd: projectFile('client') })
    await writeFile(join(home, 'package.json'), '{ "type": "module" }')
    const packed = join(home, `now-playing-hub-client-${version}.tgz`)
    await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', packed], { cwd: home })
    const hub = await createTestHub()
    t.teardown(hub.close)
    const [publisher, subscriber] = await Promise.all([hub.addPublisher(), hub.addSubscriber()])
    const options = {
      publisher: { url: hub.url, ca: hub.ca, username: publisher.username, password: publisher.password },
      subscriber: { url: hub.url, ca: hub.ca, username: subscriber.username, password: subscriber.password },
    }
    const lines = [
      `import { connectPublisher, connectSubscriber, verifyPush, type TrackEvent } from 'now-playing-hub-client'`,
      `const event: TrackEvent = ${JSON.stringify(playing(station(), { title: 'Packed' }))}`,
      `const subscriber = connectSubscriber({ ...${JSON.stringify(options.subscriber)}, filters: ['radio/#'] })`,
      `const publisher = connectPublisher({ ...${JSON.stringify(options.publisher)}, institution: '${publisher.institution}' })`,
      `subscriber.on('state', (state) => { if (state === 'live') void publisher.publish(event) })`,
      'for await (const message of subscriber) {',
      `  if (message.kind !== 'playing') continue`,
      '  const title: string = message.event.title',
      '  console.log(title, typeof verifyPush)',
      '  break',
      '}',
      'await Promise.all([subscriber.close(), publisher.close()])',
    ]
    await writeFile(join(home, 'use.ts'), lines.join('\n'))
    const common = ['--strict', '--target', 'es2022', '--types', 'node']
    const types = [...common, '--typeRoots', projectFile('node_modules/@types'), '--outDir', 'compiled']
    for (const [module, resolution] of [
      ['nodenext', 'nodenext'],
      ['esnext', 'bundler'],
    ] as const) {
      const how = ['--module', module, '--moduleResolution', resolution, ...types]
      await run(projectFile('node_modules/.bin/tsc'), ['use.ts', ...how], { cwd: home })
      // Node.js 20 warns with this option of what Node.js 24 warns of without it.
      const program = ['--pending-deprecation', 'compiled/use.js']
      const { stdout, stderr } = await run(process.execPath, program, { cwd: home, timeout: 30_000 })
      t.equal(stdout, 'Packed function\n', resolution)
      t.equal(stderr, '', 'without any warning')
    }

    await mkdir(join(home, 'certs'))
    await writeFile(join(home, 'certs/ca.pem'), hub.ca)
    const documented = codeBlock(readPage('subscribers.md'), 'js', 'connectSubscriber')
    await writeFile(join(home, 'listen.js'), documented.replace('mqtts://localhost:8883', hub.url))
    const env = { SUB_USER: subscriber.username, SUB_PASSWORD: subscriber.password }
    const program = startProgram(t, [process.execPath, 'listen.js'], { cwd: home, env })
    await program.line(new RegExp(`^${station().id} Packed \\(since before\\)$`))
  },
)
