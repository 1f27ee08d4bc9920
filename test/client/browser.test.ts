import { gzipSync } from 'node:zlib'
import { type BuildOptions, build } from 'esbuild'
import t from 'tap'
import { projectFile } from '../root.ts'

t.test('a page loads at most 10 kB for the library beside mqtt', async (t) => {
  const [library, mqtt] = await Promise.all([
    size({ entryPoints: [projectFile('client/browser.ts')] }),
    size({ stdin: { contents: `export { default } from 'mqtt'`, resolveDir: projectFile('client') } }),
  ])
  t.ok(mqtt > 50_000, 'mqtt is in both')
  t.ok(library - mqtt <= 10_000, `${library} bytes, mqtt alone ${mqtt}`)
})

/** Bytes of a bundle as servers send it: made small, and compressed with gzip. */
async function size(of: BuildOptions): Promise<number> {
  const { outputFiles } = await build({
    ...of,
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    logLevel: 'silent',
  })
  return gzipSync(outputFiles?.[0]?.contents ?? '').byteLength
}
