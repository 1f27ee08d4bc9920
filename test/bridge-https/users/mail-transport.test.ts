import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import t from 'tap'
import { createMailTransport, isNotTaken } from '../../../bridge-https/users/mail-transport.ts'

t.test(
  'a mail server that takes a connection and says nothing has certainly not taken the mail',
  async (t) => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    const send = createMailTransport({ host: '127.0.0.1', port, secure: false, from: 'hub@hub.example' })
    const mail = { to: 'studio@radio.example', subject: 'silent', lines: ['one livestream'] }
    const { now } = Date
    t.teardown(() => {
      Date.now = now
    })
    // The 20 seconds for the greeting have passed when the connection is there.
    server.once('connection', () => {
      Date.now = () => now() + 60_000
    })
    const error = await send(mail).catch((error: unknown) => error)
    t.match(error, { message: 'Greeting never received' })
    t.equal(isNotTaken(error), true)
    t.equal(isNotTaken(new Error('Connection closed unexpectedly')), false, 'it may have been taken')
  },
)
