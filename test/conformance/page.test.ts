import { readFileSync } from 'node:fs'
import t from 'tap'
import { root } from '../root.ts'

const page = readFileSync(`${root}docs/conformance.md`, 'utf8')
const rows = [...page.matchAll(/^\| MQTT-(\S+) \| ([^|]+) \| ([^|]+) \|$/gm)].map(
  ([, number = '', demand = '', shown = '']) => ({ number, demand, shown }),
)

/** Number of statements per section. The specification (appendix B) numbers them without gaps. */
const statements: Record<string, number> = {
  '1.5.3': 3,
  '2.2.2': 2,
  '2.3.1': 7,
  '3.1.0': 2,
  '3.1.2': 24,
  '3.1.3': 11,
  '3.1.4': 5,
  '3.2.0': 1,
  '3.2.2': 6,
  '3.3.1': 12,
  '3.3.2': 3,
  '3.3.4': 1,
  '3.3.5': 2,
  '3.6.1': 1,
  '3.8.1': 1,
  '3.8.3': 3,
  '3.8.4': 6,
  '3.9.3': 2,
  '3.10.1': 1,
  '3.10.3': 2,
  '3.10.4': 6,
  '3.12.4': 1,
  '3.14.1': 1,
  '3.14.4': 3,
  '4.1.0': 2,
  '4.3.1': 1,
  '4.3.2': 2,
  '4.3.3': 2,
  '4.4.0': 1,
  '4.5.0': 2,
  '4.6.0': 6,
  '4.7.1': 3,
  '4.7.2': 1,
  '4.7.3': 4,
  '4.8.0': 2,
  '6.0.0': 4,
  '7.0.0': 2,
  '7.1.1': 1,
  '7.1.2': 1,
}

t.test('every statement is on the page, once', async (t) => {
  const expected = Object.entries(statements).flatMap(([section, count]) =>
    Array.from({ length: count }, (_, index) => `${section}-${index + 1}`),
  )
  expected.push('3-8.3-4') // The specification writes this number with a hyphen after the 3.
  t.same(rows.map(({ number }) => number).sort(), expected.sort())
  t.equal(expected.length, 141)
})

t.test('every test that is named exists', async (t) => {
  for (const { number, shown } of rows) {
    const [, file, name = ''] = /^`(test\/\S+\.ts)`: (.+)$/.exec(shown) ?? []
    if (file === undefined) {
      t.match(shown, /^(demand on clients|does not apply)/, `${number}: the reason why not`)
      continue
    }
    const source = readFileSync(`${root}${file}`, 'utf8')
    t.ok(source.includes(`'${name}'`), `${number}: ${name}`)
  }
})
