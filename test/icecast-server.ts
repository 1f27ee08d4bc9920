import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'

/** False if icecast2 is installed, otherwise why tests that need it are skipped. */
export const withoutIcecast =
  spawnSync('icecast2', ['-v']).status === 0
    ? false
    : 'NOT TESTED: there is no icecast2 (apt-get install icecast2)'

export type Icecast = Awaited<ReturnType<typeof startIcecast>>

const passwords = { source: 'source-secret', admin: 'admin-secret' }
/** One frame of MPEG-1 layer III, 128 kbit/s: silence. */
const frame = Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0x64]), Buffer.alloc(413)])

/**
 * Starts Debian's icecast2 on a free loopback port, until the test ends. The mount `/utf8.mp3` has `<charset>UTF-8`.
 */
export async function startIcecast(t: Test) {
  const directory = mkdtempSync(join(tmpdir(), 'hub-icecast-'))
  chmodSync(directory, 0o777)
  const port = await freePort()
  const configuration = join(directory, 'icecast.xml')
  writeFileSync(configuration, configurationOf(port, directory))
  // It does not run as root.
  const user = userInfo().uid === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const child: ChildProcess = spawn('icecast2', ['-c', configuration], { stdio: 'ignore', ...user })
  const ended = once(child, 'exit')
  const sockets: Socket[] = []
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    child.kill('SIGKILL')
    await ended
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  })
  while (!(await isListening(port))) await setTimeout(20)

  async function open(head: string): Promise<Socket> {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.write(head)
    return socket
  }

  return {
    port,
    url: `http://127.0.0.1:${port}`,
    passwords,

    /** Connects a source that sends silence as MP3, or what it is given. Returns how to end it. */
    async source(mount: string, type = 'audio/mpeg', sound: Buffer = frame): Promise<() => Promise<void>> {
      const login = Buffer.from(`source:${passwords.source}`).toString('base64')
      const head = `SOURCE ${mount} HTTP/1.0\r\nAuthorization: Basic ${login}\r\nContent-Type: ${type}\r\n\r\n`
      const socket = await open(head)
      const [answer] = await once(socket, 'data')
      if (!String(answer).includes('200')) throw new Error(`icecast2 refused the source: ${answer}`)
      const sending = setInterval(() => socket.write(sound), 20)
      socket.on('close', () => clearInterval(sending))
      return async () => {
        clearInterval(sending)
        socket.end()
        await once(socket, 'close')
      }
    },

    /** Connects a listener that reads titles. `titles` grows: the blocks as they came, without padding. */
    async listener(mount: string): Promise<{ titles: Buffer[] }> {
      const socket = await open(`GET ${mount} HTTP/1.0\r\nIcy-MetaData: 1\r\n\r\n`)
      const titles: Buffer[] = []
      readTitles(socket, (title) => titles.push(title))
      return { titles }
    },

    /** The status page that anybody reads. */
    async status(mount: string): Promise<{ title?: string; artist?: string } | undefined> {
      const answer = await fetch(`http://127.0.0.1:${port}/status-json.xsl`)
      const { icestats } = JSON.parse(await answer.text())
      return [icestats.source ?? []].flat().find(({ listenurl }) => listenurl.endsWith(mount))
    },

    /** Changes metadata as other programs do. */
    async update(mount: string, fields: Record<string, string>): Promise<string> {
      const query = new URLSearchParams({ mode: 'updinfo', mount, ...fields })
      const login = Buffer.from(`admin:${passwords.admin}`).toString('base64')
      const answer = await fetch(`http://127.0.0.1:${port}/admin/metadata?${query}`, {
        headers: { authorization: `Basic ${login}` },
      })
      return answer.text()
    },
  }
}

function configurationOf(port: number, directory: string): string {
  return `<icecast>
  <limits><clients>100</clients><sources>10</sources><burst-size>0</burst-size></limits>
  <authentication><source-password>${passwords.source}</source-password>
    <admin-user>admin</admin-user><admin-password>${passwords.admin}</admin-password></authentication>
  <hostname>localhost</hostname>
  <listen-socket><port>${port}</port><bind-address>127.0.0.1</bind-address></listen-socket>
  <mount><mount-name>/utf8.mp3</mount-name><charset>UTF-8</charset></mount>
  <paths><logdir>${directory}</logdir><webroot>/usr/share/icecast2/web</webroot>
    <adminroot>/usr/share/icecast2/admin</adminroot></paths>
  <logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog><loglevel>2</loglevel></logging>
</icecast>`
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isOpen
}

/** Reads the blocks between the sound: after each `icy-metaint` bytes one byte with the length in sixteens, and the text. */
function readTitles(socket: Socket, found: (title: Buffer) => void): void {
  let buffer = Buffer.alloc(0)
  let every = 0
  socket.on('data', (chunk: Buffer) => {
    buffer = Buffer.concat([buffer, chunk])
    if (every === 0) {
      const end = buffer.indexOf('\r\n\r\n')
      if (end < 0) return
      every = Number(/icy-metaint: ?(\d+)/i.exec(buffer.subarray(0, end).toString())?.[1])
      buffer = buffer.subarray(end + 4)
    }
    for (;;) {
      const length = (buffer[every] ?? 0) * 16
      if (buffer.length < every + 1 + length) return
      const block = buffer.subarray(every + 1, every + 1 + length)
      if (length > 0) found(Buffer.from(block.subarray(0, block.indexOf(0) < 0 ? length : block.indexOf(0))))
      buffer = buffer.subarray(every + 1 + length)
    }
  })
}
