import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { operations as all } from '../../../operations/operations.ts'
import { operations } from '../../../web/console/operations.ts'
import { root } from '../../root.ts'

/*
 * Everything that an operator can do with `hubctl` can be done in the console.
 */
const folder = join(root, 'web/console')
const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path) && path !== 'operations.ts')
  .map((path) => readFileSync(join(folder, path), 'utf8'))

t.test('the console has every command, and asks before each that takes something away', async (t) => {
  t.same(Object.keys(operations).sort(), Object.keys(all).sort())
  for (const [name, operation] of Object.entries(operations)) {
    t.equal('loses' in operation, Reflect.get(all, name).effect === 'loss', `${name} takes something away`)
  }
})

t.test('every command of the table is asked by a view', async (t) => {
  for (const name of Object.keys(operations)) {
    const isAsked = sources.some((source) =>
      [`name="${name}"`, `useCommandAnswer('${name}'`, `operate('${name}'`].some((use) =>
        source.replace(/\(\s+/g, '(').includes(use),
      ),
    )
    t.ok(isAsked, name)
  }
})
