import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'

export interface Mail {
  from: string
  to: string[]
  text: string
}

/** Starts a mail server that accepts every mail, with the least of SMTP (RFC 5321). */
export async function startMailServer(t: Test) {
  const mails: Mail[] = []
  const sockets = new Set<Socket>()
  let wake = () => {}
  let read = 0
  let isAnswering = true
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    serve(socket, (mail) => {
      mails.push(mail)
      wake()
      return isAnswering
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()

  return {
    port: typeof address === 'object' && address ? address.port : 0,
    count: () => mails.length,
    /** From now on, mails come in and nobody says so, or it is said again. */
    answer(answers: boolean): void {
      isAnswering = answers
    },
    /** Waits for the next mail, in the order of arrival. */
    async next(): Promise<Mail> {
      for (;;) {
        const mail = mails[read]
        if (mail) {
          read++
          return mail
        }
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

/** `received` returns whether the mail is acknowledged. */
function serve(socket: Socket, received: (mail: Mail) => boolean): void {
  let mail: Mail = { from: '', to: [], text: '' }
  let inText = false
  const answer = (line: string) => socket.write(`${line}\r\n`)
  answer('220 test')
  createInterface({ input: socket }).on('line', (line) => {
    if (inText) {
      if (line !== '.') {
        // Quoted-printable breaks long lines with an equals sign at their end.
        mail.text = mail.text.endsWith('=') ? mail.text.slice(0, -1) + line : `${mail.text}\n${line}`
        return
      }
      inText = false
      if (received({ ...mail, text: mail.text.replaceAll('=3D', '=') })) answer('250 ok')
      mail = { from: '', to: [], text: '' }
      return
    }
    const address = /<(.*?)>/.exec(line)?.[1] ?? ''
    if (/^MAIL/i.test(line)) mail.from = address
    if (/^RCPT/i.test(line)) mail.to.push(address)
    inText = /^DATA/i.test(line)
    if (/^QUIT/i.test(line)) socket.end('221 bye\r\n')
    else answer(inText ? '354 go on' : '250 ok')
  })
}
