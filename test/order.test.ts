import { existsSync } from 'node:fs'
import t from 'tap'
import { longest, longestFirst } from './order.ts'
import { projectFile } from './root.ts'

t.test('the longest tests begin first, all others keep their order', async (t) => {
  const [first, second, third] = longest.map((name) => `/.compiled/test/${name}.test.js`)
  t.strictSame(longestFirst(['/b', third ?? '', '/a', first ?? '']), [first, third, '/b', '/a'])
  t.strictSame(longestFirst([second ?? '', second ?? '']), [second], 'each once')
  t.strictSame(longestFirst([]), [])
})

t.test('each of them is there', async (t) => {
  for (const name of longest) t.ok(existsSync(projectFile(`test/${name}.test.ts`)), name)
})
