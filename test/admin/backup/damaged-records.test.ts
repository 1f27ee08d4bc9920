import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { checkFile, linesOf } from '../../../admin/backup/export-file.ts'
import { openEmbeddedStore } from '../../../store/embedded.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { bytesOf, samples } from '../../store/record-samples.ts'

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
    message: 'the record "user/x" of "user/" cannot be read, expected a JSON object',
  })
})

t.test(
  'a start that cannot read a record names this key, and what to do',
  { timeout: 120_000 },
  async (t) => {
    t.jobs = 2
    for (const [key, value] of [
      ['user/x', '{}'],
      ['user/%', valueFor('user/')],
      ['credential/x', 'not json'],
      ['topic/x', '[]'],
      ['subscription/x', '{"name":5}'],
      ['session/x', '{"clientId":"x"}'],
      ['work/q/0000000000000001', '0'],
      ['every/s/0000000000000001', '{"qos":1}'],
      ['retained/x', '0000000000000001'],
    ] as const) {
      t.test(key, async (t) => {
        const home = await temporaryDirectory(t)
        const store = await openEmbeddedStore(join(home, 'data', 'store'))
        // Good records before and behind it, which a start reads too.
        await store.commit(samples.map((sample) => ({ put: sample.key, value: bytesOf(sample) })))
        await store.commit([{ put: key, value }])
        await store.close()
        const message = new RegExp(
          `^the record ${JSON.stringify(key)} of .* expected .*Import a backup into an empty store$`,
        )
        await t.rejects(startTestHub(t, {}, home), { message })
      })
    }
  },
)

function valueFor(family: string): Buffer {
  const sample = samples.find(({ key }) => key.startsWith(family))
  if (!sample) throw new Error(`no sample of ${family}`)
  return bytesOf(sample)
}
