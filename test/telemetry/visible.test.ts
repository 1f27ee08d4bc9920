import { spawnSync } from 'node:child_process'
import t from 'tap'
import { createPrinter } from '../../cli/print.ts'
import { legibleJson, visible, visibleJson } from '../../telemetry/visible.ts'
import { evaluate, moduleOf } from '../root.ts'

/** Texts of a client, one for each kind of character that a terminal acts upon or hides. */
const hostile: [name: string, text: string, shown: string][] = [
  ['escape sequences', '\x1b[2J\x1b]0;x\x07', '\\x1b[2J\\x1b]0;x\\x07'],
  ['line ends', 'a\r\nb\u2028c', 'a\\x0d\\x0ab\\u{2028}c'],
  ['C1', '\x9b31m\x85', '\\x9b31m\\x85'],
  ['bidi', '\u202etxt\u2066\u200f\u061c', '\\u{202e}txt\\u{2066}\\u{200f}\\u{061c}'],
  ['invisible', '\u200b\ufeff\u{e0041}', '\\u{200b}\\u{feff}\\u{e0041}'],
  ['private and lone', '\ue000\ud800', '\\u{e000}\\u{d800}'],
]
const harmless = 'Käse 🎵 "quoted" \\ C:\\new\\u0041'
const acts = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/u

t.test('what moves a cursor is visible in hubctl', async (t) => {
  for (const [name, text, shown] of hostile) {
    t.equal(visible(text), shown, name)
    t.match(createPrinter({}).sentence('Dropped {text}.', { text }), shown, name)
  }
  t.equal(visible(harmless), harmless)
})

t.test('JSON keeps its value', async (t) => {
  for (const [name, text] of [...hostile, ['harmless', harmless] as const]) {
    const value = { [text]: [text] }
    const json = visibleJson(JSON.stringify(value))
    t.notMatch(json, acts, name)
    t.same(JSON.parse(json), value, name)
  }
  t.equal(visibleJson('{"a":1}\n'), '{"a":1}\n')
})

t.test('a line of JSON for people reads as in hubctl', async (t) => {
  for (const [name, text, shown] of hostile.filter(([name]) => name !== 'line ends')) {
    t.same(JSON.parse(legibleJson(`${JSON.stringify({ text })}\n`)), { text: shown }, name)
  }
  t.same(JSON.parse(legibleJson(JSON.stringify({ harmless }))), { harmless })
  const stack = 'Error: x\n\tat y'
  t.same(JSON.parse(legibleJson(JSON.stringify({ stack }))), { stack })
})

t.test('the log of a node', async (t) => {
  const clientId = hostile.map(([, text]) => text).join(' ')
  const logged = (
    isTty: boolean,
    write = 'log.warn({ clientId, err: new Error(clientId), nested: { [clientId]: [clientId] } }, clientId)',
  ) => {
    const code = `process.stdout.isTTY = ${isTty}
      const { createLog } = await import(${moduleOf('telemetry/log.ts')})
      const clientId = ${JSON.stringify(clientId)}
      const log = createLog('info')
      ${write}`
    const [node, ...args] = evaluate
    const env = { ...process.env, NO_COLOR: '1' }
    return spawnSync(node, [...args, code], { encoding: 'utf8', env }).stdout
  }

  t.test('in JSON has nothing that a terminal acts upon, and the value as it was', async (t) => {
    const lines = logged(false)
    t.equal(lines.split('\n').length, 2)
    t.notMatch(lines.trimEnd(), acts)
    t.equal(JSON.parse(lines).clientId, clientId)
  })

  t.test('on a terminal shows it as hubctl does', async (t) => {
    const text = logged(true)
    for (const line of text.split('\n')) t.notMatch(line.replaceAll('\t', ''), acts)
    for (const [, , shown] of hostile.filter(([name]) => name !== 'line ends')) t.match(text, shown)
  })
  t.test('on a terminal goes on after a line that cannot be printed', async (t) => {
    const names = ['constructor', 'hasOwnProperty', 'valueOf']
    const lines = names.map((name) => `log.info({ '${name}': 1 }, 'of ${name}')\nlog.info('after ${name}')`)
    const text = logged(true, lines.join('\n'))
    for (const name of names) {
      t.match(text, `"of ${name}"`, 'as it is')
      t.match(text, `INFO: after ${name}`)
    }
  })
})

t.test('a text of several lines is printed below its name, and cannot pass for another row', async (t) => {
  const printed = createPrinter({}).properties({ name: 'radio', request: 'RT=One\r\nstate  fine\r\n' })
  t.equal(printed, ['name     radio', 'request  RT=One', '         state  fine'].join('\n'))
  const ends = createPrinter({}).properties({ answer: 'OK\u2028\u200b\r\n', reason: 'a\rb' })
  t.equal(ends, ['answer  OK\\u{2028}\\u{200b}', 'reason  a\\x0db'].join('\n'), 'nothing invisible is hidden')
})
