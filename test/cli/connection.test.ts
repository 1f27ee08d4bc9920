import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openLines, readLines } from '../../cli/connection.ts'
import { shortDir } from './short-dir.ts'

t.test('a node that hangs ends a command whose answer comes line by line', async (t) => {
  const path = await hungNode(t)
  const failure = await readLines(path, 'events.tail', { args: {}, who: 'kim', print: () => {} }, 50)
  t.strictSame(failure, {
    code: 'node.unreachable',
    message: `the node on ${path} cannot be asked: no answer within 0.05 s`,
  })
})

t.test('a node that hangs ends an export, before its answer and in the middle', async (t) => {
  const silent = await hungNode(t)
  const unanswered = await openLines(silent, 'export', 'kim', new AbortController().signal, 50)
  t.match(unanswered, { error: { code: 'node.unreachable', message: /no answer within 0.05 s/ } })

  const stuck = await hungNode(t, '{"first":"line"}\n')
  const answer = await openLines(stuck, 'export', 'kim', new AbortController().signal, 50)
  if ('error' in answer) throw new Error(answer.error.message)
  await t.rejects(once(answer.stream.resume(), 'end'), { message: 'no answer within 0.05 s' })
})

t.test('an answer that has begun may be without a line for any time', async (t) => {
  const path = await hungNode(t, '{"first":"line"}\n')
  const lines: unknown[] = []
  const ended = readLines(
    path,
    'events.tail',
    { args: {}, who: 'kim', print: (line) => lines.push(line) },
    50,
  )
  // An export with ten times the patience gives up later than the tail would have.
  const answer = await openLines(path, 'export', 'kim', new AbortController().signal, 500)
  if ('error' in answer) throw new Error(answer.error.message)
  await t.rejects(once(answer.stream.resume(), 'end'))
  t.equal(await Promise.race([ended, 'goes on']), 'goes on')
  t.strictSame(lines, [{ first: 'line' }])
})

/** A socket that takes commands, and sends at most the beginning of an answer. */
async function hungNode(t: Test, beginning?: string): Promise<string> {
  const path = join(await shortDir(t), 's')
  const server = createServer((socket) => {
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined)
    socket.once('data', () => {
      if (beginning === undefined) return
      const chunk = `${Buffer.byteLength(beginning).toString(16)}\r\n${beginning}\r\n`
      socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`)
    })
  }).listen(path)
  await once(server, 'listening')
  t.teardown(() => server.close())
  return path
}
