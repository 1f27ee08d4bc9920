import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { freePort } from '../../free-port.ts'
import { projectFile } from '../../root.ts'

export const withoutBalancer =
  spawnSync('haproxy', ['-v']).status === 0
    ? false
    : 'NOT TESTED: there is no haproxy (apt-get install haproxy)'

interface Ports {
  mqtt: number
  https: number
}

/** Starts haproxy with the shipped configuration. Only addresses, ports and `maxconn` are changed. */
export async function startBalancer(t: Test, home: string, nodes: { a: Ports; b: Ports }) {
  const own = { mqtt: await freePort(), https: await freePort(), a: await freePort(), b: await freePort() }
  let text = await readFile(projectFile('deploy/haproxy.cfg'), 'utf8')
  text = text
    .replace('maxconn 80000', 'maxconn 100')
    .replace('bind :8883', `bind 127.0.0.1:${own.mqtt}`)
    .replace('bind :8443', `bind 127.0.0.1:${own.https}`)
    .replace('bind :9441', `bind 127.0.0.1:${own.a}`)
    .replace('bind :9442', `bind 127.0.0.1:${own.b}`)
  for (const [name, address] of [
    ['a', '192.0.2.11'],
    ['b', '192.0.2.12'],
  ] as const) {
    const { mqtt, https } = nodes[name]
    text = text
      .replace(`${address}:8883 check port 8443`, `127.0.0.1:${mqtt} check port ${https}`)
      .replaceAll(`${address}:8443`, `127.0.0.1:${https}`)
  }
  t.notMatch(text, /192\.0\.2|:8883|8443/, 'everything was replaced')
  const path = join(home, 'haproxy.cfg')
  await writeFile(path, text)
  const child = spawn('haproxy', ['-db', '-f', path], { stdio: ['ignore', 'ignore', 'pipe'] })
  let output = ''
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  while (!(await accepts(own.mqtt))) {
    if (child.exitCode !== null) throw new Error(output)
    await delay(20)
  }
  return {
    ...own,
    /** Resolves when haproxy has logged these words. Rejects after 30 s. */
    async says(words: string): Promise<void> {
      const deadline = Date.now() + 30_000
      while (!output.includes(words)) {
        if (Date.now() > deadline) throw new Error(`nothing of "${words}" in:\n${output}`)
        await delay(20)
      }
    },
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
