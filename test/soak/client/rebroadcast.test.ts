import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { connect, connectPublisher } from '../../clients.ts'
import { codeBlock, readPage, startProgram } from '../../documentation.ts'
import { institutions, playing, playingTopic, serviceOf, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'
import { folderWithClient } from './client-folder.ts'

/*
 * The program of docs/publishers.md that publishes the programme of another house, as it stands there.
 */
const [own = '', other = ''] = institutions
const [ours, theirs] = [station(0), station(1)]
const program = codeBlock(readPage('publishers.md'), 'js', 'THEIRS')

t.test('a programme is passed on while it is on air, and no loop comes of it', async (t) => {
  const hub = await startTestHub(t)
  const folder = await folderWithClient(t)
  await writeFile(join(folder, 'rebroadcast.mjs'), program)
  const reader = await hub.subscriber('radio/#')
  const watched = await connect(t, hub, reader)
  await watched.client.subscribeAsync('radio/#')
  const studio = await connectPublisher(t, hub, await hub.publisher([other]), other)
  await studio.publish(playing(theirs, { title: 'Before' }))
  const run = async (institution: string, from: typeof ours, to: typeof ours, onAir: string) => {
    const login = await hub.publisher([institution])
    return startProgram(t, [process.execPath, 'rebroadcast.mjs'], {
      cwd: folder,
      env: {
        PATH: process.env.PATH ?? '',
        HOST: 'localhost',
        PORT: `${hub.mqttPort}`,
        CA: hub.caPath,
        INSTITUTION: institution,
        PUB_USER: login.username,
        PUB_PASSWORD: login.password,
        SUB_USER: reader.username,
        SUB_PASSWORD: reader.password,
        THEIRS: from.id,
        OWN: JSON.stringify(serviceOf(to)),
        ON_AIR: join(folder, onAir),
      },
    })
  }
  const titlesOn = (livestream: typeof ours) =>
    watched.received.all.flatMap(({ topic, json }) =>
      topic === playingTopic(livestream) ? [json.title] : [],
    )
  const carrying = await run(own, theirs, ours, 'ours')
  await hub.until(async () => (await hub.ask<object[]>('clients.list')).length === 4)
  await studio.publish(playing(theirs, { title: 'Off air' }))
  await writeFile(join(folder, 'ours'), '')
  await carrying.line(/^passed on Off air$/)
  await studio.publish(playing(theirs, { title: 'On air' }))
  await carrying.line(/^passed on On air$/)
  t.same(titlesOn(ours), ['Off air', 'On air'], 'what played already, and what came')

  // The other house carries the programme of this one at the same time: the usual way to a loop.
  await writeFile(join(folder, 'theirs'), '')
  const back = await run(other, ours, theirs, 'theirs')
  await back.line(/^passed on On air$/)
  await studio.publish(playing(theirs, { title: 'Again' }))
  await carrying.line(/^passed on Again$/)
  await back.line(/^passed on Again$/)
  await rm(join(folder, 'ours'))
  await studio.publish(playing(theirs, { title: 'Ended' }))
  await watched.received.until(({ json }) => json.title === 'Ended')
  t.same(titlesOn(ours), ['Off air', 'On air', 'Again'], 'each title once, and nothing after the end')
  t.same(carrying.complaints, [])
})
