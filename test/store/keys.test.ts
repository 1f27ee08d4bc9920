import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { storeKeys } from '../../store/keys.ts'
import { root } from '../root.ts'

t.test('a family of keys is used where its row says', async (t) => {
  for (const [name, { owner }] of Object.entries(storeKeys)) {
    const paths = owner.endsWith('.ts')
      ? [owner]
      : readdirSync(join(root, owner)).map((file) => join(owner, file))
    const texts = paths
      .filter((path) => path.endsWith('.ts'))
      .map((path) => readFileSync(join(root, path), 'utf8'))
    t.ok(
      texts.some((text) => RegExp(`storeKeys\\.${name}\\b`).test(text)),
      `${name} in ${owner}`,
    )
  }
})

t.test('no two families begin alike', async (t) => {
  const prefixes = Object.values(storeKeys).map(({ prefix }) => prefix)
  t.equal(new Set(prefixes).size, prefixes.length)
})
