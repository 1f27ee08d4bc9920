import { readFileSync } from 'node:fs'
import { connect, type TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import type { TestHub } from '../start-hub.ts'

/** Sends bytes. Resolves with the answer when the node closes the connection. */
export async function exchange(
  t: Test,
  hub: Pick<TestHub, 'httpsPort' | 'caPath'>,
  text: string | Buffer,
): Promise<string> {
  const options = { host: 'localhost', port: hub.httpsPort, ca: readFileSync(hub.caPath) }
  const socket = await secured(connect(options))
  t.teardown(() => socket.destroy())
  socket.write(text)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  return answer
}

/** Resolves after the TLS handshake. Rejects if the handshake fails. */
export function secured(socket: TLSSocket): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    socket.once('secureConnect', () => resolve(socket))
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
  })
}
