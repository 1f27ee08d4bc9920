import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'

/**
 * Returns a free port below the range for outgoing connections. In that range, a connection could take the port before
 * the test.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000)
    if (!reserve(port)) continue
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

const reservations = join(tmpdir(), `hub-test-ports-${userInfo().uid}`)
const ofThisProcess: string[] = []
process.once('exit', () => {
  for (const path of ofThisProcess) rmSync(path, { force: true })
})

/** Reserves a port until this process ends. Otherwise two test files could find the same port free at the same time. */
function reserve(port: number): boolean {
  mkdirSync(reservations, { recursive: true })
  const path = join(reservations, String(port))
  try {
    writeFileSync(path, '', { flag: 'wx' })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
  ofThisProcess.push(path)
  return true
}
