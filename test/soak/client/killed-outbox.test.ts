import { statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { openOutbox } from '../../../client/outbox.ts'
import { startProgram } from '../../documentation.ts'
import { projectFile, root } from '../../root.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { pythons, startPython } from './python-programs.ts'

/*
 * Programs that keep and settle events without a pause are killed, one after the other, on one outbox: those of both
 * libraries write the same file. Events are so large that every tenth makes the file anew.
 */

const inJavaScript = (path: string, first: number) => `
import { writeSync } from 'node:fs'
const { openOutbox } = await import(${JSON.stringify(pathToFileURL(projectFile('client/outbox.ts')).href)})
const outbox = openOutbox(${JSON.stringify(path)})
const kept = []
for (let nth = ${first}; ; nth++) {
  const { number, synced } = outbox.add(JSON.stringify({ event: 'x', nth, fill: 'x'.repeat(100_000) }))
  await synced
  writeSync(1, 'kept ' + nth + '\\n')
  kept.push([nth, number])
  if (kept.length <= 2) continue
  const [settled, itsNumber] = kept.shift()
  writeSync(1, 'settled ' + settled + '\\n')
  outbox.settled(itsNumber)
}`

const inPython = (path: string, first: number) => `
import json, os
import now_playing_hub as hub
outbox = hub._Outbox(${JSON.stringify(path)})
kept = []
nth = ${first}
while True:
    [number] = outbox.add([json.dumps({"event": "x", "nth": nth, "fill": "x" * 100_000})])
    os.write(1, f"kept {nth}\\n".encode())
    kept.append((nth, number))
    nth += 1
    if len(kept) > 2:
        settled, number = kept.pop(0)
        os.write(1, f"settled {settled}\\n".encode())
        outbox.settled(number)
`

t.test(
  'a program that is killed has lost no event that was on the disk, and kept none that was settled long ago',
  async (t) => {
    const path = join(await temporaryDirectory(t), 'outbox')
    const [python] = pythons
    /** Events that are on the disk, and not settled. */
    const owed = new Set<number>()
    /** Events whose settling may not have been written: that is not synced, but comes before the next event. */
    const perhaps = new Set<number>()
    for (let round = 0; round < 12; round++) {
      const first = round * 1_000
      const program =
        python && round % 2 ? startPython(t, python.python, inPython(path, first), {}) : start(t, path, first)
      const { line, kill, ended, lines } = await program
      // Each kill hits another step.
      await line(new RegExp(`^kept ${first + 3 + 5 * round}$`))
      kill()
      await ended
      for (const said of lines) {
        const [word, number] = said.split(' ')
        if (word === 'kept') {
          owed.add(Number(number))
          perhaps.clear()
        } else if (word === 'settled') {
          owed.delete(Number(number))
          perhaps.add(Number(number))
        } else t.fail(said)
      }
      const outbox = openOutbox(path)
      const found = new Set(outbox.restored.map(({ payload }) => Number(JSON.parse(payload).nth)))
      await outbox.close()
      t.equal(outbox.damaged, 0)
      t.same(
        [...owed].filter((nth) => !found.has(nth)),
        [],
        `nothing is lost in round ${round}`,
      )
      const last = Math.max(...found)
      // The kill may have come between the sync of an event and its line here.
      const tooMany = [...found].filter((nth) => !owed.has(nth) && !perhaps.has(nth) && nth !== last)
      t.same(tooMany, [], `nothing is kept for ever in round ${round}`)
      for (const nth of found) owed.add(nth)
      t.ok(statSync(path).size < 100_000 * (found.size + 1), 'the file is as small as what is in it')
    }
    t.ok(owed.size >= 24, 'each round left some')
  },
)

function start(t: Test, path: string, first: number) {
  const command = [process.execPath, '--import=tsx', '--input-type=module', '-e', inJavaScript(path, first)]
  return startProgram(t, command, { cwd: root, env: { PATH: process.env.PATH ?? '' } })
}
