import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Push, PushRefused, verifyPush } from '../../../client/node.ts'
import { addUser, openApi, openClient } from '../../bridge-https/api.ts'
import { codeBlock, readPage, startProgram } from '../../documentation.ts'
import { institutions, playing, station } from '../../events.ts'
import { freePort } from '../../free-port.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { projectFile } from '../../root.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { folderWithClient } from './client-folder.ts'
import { pythons } from './python-programs.ts'

const [own = ''] = institutions

t.test('pushes of a hub are verified, also when its key is replaced at once', async (t) => {
  const { receiver, hub, publish, logIn, created, listed } = await start(t, '/hook')
  const options = {
    hub: `https://localhost:${hub.httpsPort}`,
    url: receiver.url(),
    subscriptions: JSON.parse(listed),
    ca: readFileSync(hub.caPath, 'utf8'),
  }
  const verified: Push[] = []
  const codes: string[] = []
  let taken = () => {}
  receiver.behave((pushed, response) => {
    verifyPush(pushed, options).then(
      (push) => {
        verified.push(push)
        response.writeHead(201).end()
        taken()
      },
      (error: unknown) => {
        codes.push(error instanceof PushRefused ? error.code : String(error))
        response.writeHead(error instanceof PushRefused ? error.status : 500).end()
      },
    )
    return undefined
  })
  const until = async (count: number) => {
    while (verified.length < count) await new Promise<void>((resolve) => (taken = resolve))
  }

  await publish('before')
  await until(1)
  await hub.ask('keys.rotate', { dropOld: true })
  // The old key is gone, and the log-in with it.
  await logIn()
  await publish('after')
  await until(2)
  t.match(
    verified.map(({ event, subscription }) => ({ title: Object(event).title, subscription })),
    [
      { title: 'before', subscription: created },
      { title: 'after', subscription: created },
    ],
  )
  // The keys had been read within the last ten seconds.
  t.strictSame([...new Set(codes)], ['key.unknown'], 'it says that it cannot tell, and the hub comes again')
})

const receivers = [
  {
    page: 'webhooks.md',
    language: 'js',
    having: 'await verifyPush(',
    file: 'receiver.mjs',
    program: process.execPath,
  },
  // Debian's Python has PyJWT and cryptography.
  ...pythons.slice(-1).map(({ python }) => ({
    page: 'clients/python.md',
    language: 'python',
    having: 'verify_push(',
    file: 'receiver.py',
    program: python,
  })),
]

for (const { page, language, having, file, program } of receivers) {
  t.test(
    `the receiver with the library in ${language} does a genuine push once, and nothing else`,
    async (t) => {
      const { receiver, hub, publish, listed, ca } = await start(t, '/')
      await publish('Salt on the Window')
      await receiver.until((received) => received.length === 1)
      const [pushed] = receiver.received
      if (!pushed) throw new Error('nothing arrived')

      // The program has the URL of the subscription, and listens beside it: this test posts what was pushed there.
      const port = await freePort()
      const folder = await folderWithClient(t)
      const text = codeBlock(readPage(page), language, having)
      const beside = text
        .replace('listen(Number(HOOK_PORT)', `listen(${port}`)
        .replace('("localhost", port)', `("localhost", ${port})`)
      t.not(beside, text)
      writeFileSync(join(folder, file), beside)
      writeFileSync(join(folder, 'subscriptions.json'), listed)
      const receiving = startProgram(t, [program, file], {
        cwd: folder,
        env: {
          HUB: `https://localhost:${hub.httpsPort}`,
          HOOK_PORT: `${receiver.port}`,
          CERT: receiver.cert,
          KEY: receiver.key,
          CA: hub.caPath,
          NODE_EXTRA_CA_CERTS: hub.caPath,
          PYTHONPATH: projectFile('client/python'),
          PYTHONDONTWRITEBYTECODE: '1',
        },
      })
      await receiving.line(/^listening on port/)
      const post = openClient(t, { httpsPort: port, caPath: ca })
      const genuine = String(pushed.headers.authorization)
      const send = async (body: unknown, authorization = genuine) =>
        (await post('POST', '/', { body, headers: { authorization, connection: 'close' } })).status
      const done = () => receiving.lines.filter((line) => line.endsWith('Salt on the Window')).length
      const { body } = pushed
      const signature = genuine.slice(genuine.lastIndexOf('.') + 1)

      t.equal(await send(body), 201)
      t.equal(await send(body), 201, 'a repetition')
      t.equal(done(), 1)
      const another = { ...body, message: { ...body.message, messageId: '1' } }
      const stale = genuine.replace(signature, signature.split('').toReversed().join(''))
      t.equal(await send(another, stale), 204, 'a wrong signature')
      t.equal(await send(another, 'Basic eDp5'), 401, 'no token')
      t.equal(
        await send({ ...another, subscription: 'other' }),
        503,
        'a subscription that is not in the list yet',
      )
      t.equal(await send(JSON.stringify(body).slice(0, -9)), 400, 'a body that was cut on its way')
      const broken = { ...another.message, data: '%' }
      t.equal(await send({ ...body, message: broken }), 400, 'data that was changed on its way')
      const kept = { ...another.message, data: Buffer.from('{}').toString('base64'), messageId: '2' }
      if (language === 'python')
        t.equal(await send({ ...body, message: kept }), 503, 'an event that handle cannot do')
      t.equal(done(), 1, 'and nothing of it was done')
      t.equal(await send(another), 201, 'it goes on')
    },
  )
}

/** A node with a topic, and a subscription whose receiver records what it gets. */
async function start(t: Test, path: string) {
  const receiver = await startReceiver(t, await temporaryDirectory(t))
  const hub = await startTestHub(t, pushing(receiver))
  const api = await openApi(t, hub)
  let token = ''
  const logIn = async () => {
    token = (await addUser(hub, api, own)).token
  }
  const publish = async (title: string) => {
    const body = playing(station(), { title })
    const answer = await api.call('POST', '/events/de.org.hub.v1.radio.track.playing', { token, body })
    t.equal(answer.status, 201, title)
  }
  await logIn()
  await publish('makes the topic')
  const url = receiver.url(path)
  const created = await api.call('POST', '/subscriptions', {
    token,
    body: { type: 'PUBSUB', method: 'PUSH', url, contact: 'a@b.example', topic: station().id },
  })
  t.equal(created.status, 201)
  const listed = (await api.call('GET', '/subscriptions', { token })).text
  return { receiver, hub, publish, logIn, created: created.json.name, listed, ca: receiver.ca ?? '' }
}
