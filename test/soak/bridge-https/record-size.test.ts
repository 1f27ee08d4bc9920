import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { startTestHub } from '../../start-hub.ts'

t.test('no TLS record is longer than a small device asks for (RFC 6066 §4)', async (t) => {
  const { httpsPort, caPath } = await startTestHub(t)
  for (const version of ['-tls1_2', '-tls1_3']) {
    t.ok((await longestRecord(version)) > 10_000, `${version}: long records without a wish`)
    const longest = await longestRecord(version, '-maxfraglen', '1024')
    t.ok(longest <= 1024 + 64, `${version}: ${longest} bytes, of which some are of the encryption`)
  }

  /** Of an answer that is longer than any record, in bytes. */
  async function longestRecord(...options: string[]): Promise<number> {
    const target = ['-connect', `localhost:${httpsPort}`, '-CAfile', caPath]
    const client = spawn('openssl', ['s_client', ...target, ...options, '-msg', '-ign_eof'])
    t.teardown(() => client.kill())
    let text = ''
    client.stdout.setEncoding('latin1').on('data', (more: string) => {
      text += more
    })
    client.stdin.end('GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    await once(client, 'close')
    t.match(text, /HTTP\/1\.1 200/)
    // The header of each record with data: type 23, version, length.
    const headers = text.matchAll(/^<<< .*RecordHeader.*\n +17 03 03 (..) (..)/gm)
    return Math.max(...Array.from(headers, ([, high, low]) => Number.parseInt(`${high}${low}`, 16)))
  }
})
