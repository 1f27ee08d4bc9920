import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { checkFile, linesOf } from '../../../admin/backup/export-file.ts'
import { families, problemOf } from '../../../admin/backup/records.ts'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

const rubbish = ['not json', '', 'null', '[]', '{"half":', '\u0000\u0001']

t.test('an export with a record that no node can read is refused with its key', async (t) => {
  const file = join(await temporaryDirectory(t), 'export')
  const pages = async function* () {
    yield [{ key: 'user/x', value: Buffer.from('not json') }]
  }
  const lines: string[] = []
  for await (const line of linesOf({ release: '1', at: '', from: 'embedded' }, pages()))
    lines.push(`${JSON.stringify(line)}\n`)
  await writeFile(file, gzipSync(lines.join('')))
  await t.rejects(checkFile(file), {
    name: 'UnusableFile',
    message: 'the record "user/x" cannot be read, expected a JSON object with userId and email',
  })
  for (const key of ['user/x', 'session/x'])
    t.match(problemOf({ key, value: Buffer.from('{}') }), `"${key}"`, `${key}: a start would fail`)
  for (const [family, form] of Object.entries(families)) {
    for (const text of rubbish) {
      if (form === 'json' && ['null', '[]'].includes(text)) continue
      t.match(problemOf({ key: `${family}x`, value: Buffer.from(text) }), `"${family}x"`, `${family} ${text}`)
    }
  }
})

t.test('a start that cannot read a record names its key', { timeout: 120_000 }, async (t) => {
  t.jobs = 2
  for (const key of ['user/x', 'credential/x', 'topic/x', 'subscription/x', 'session/x', 'work/q/1']) {
    t.test(key, async (t) => {
      const home = await temporaryDirectory(t)
      const store = await openEmbeddedStore(join(home, 'data', 'store'))
      await store.commit([{ put: key, value: 'not json' }])
      await store.close()
      await t.rejects(startTestHub(t, {}, home), { message: `a record that cannot be read, "${key}"` })
    })
  }
})
