import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { type BuildOptions, build, type Metafile, type Plugin, transform } from 'esbuild'
import { licensesOf, packagesOf } from './licenses.ts'
import { pages, type WebPage } from './pages.ts'

const sources = fileURLToPath(new URL('.', import.meta.url))

const inBrowsers = {
  bundle: true,
  minify: true,
  platform: 'browser',
  target: ['chrome111', 'firefox115', 'safari16.4'],
  logLevel: 'warning',
} satisfies BuildOptions

/**
 * Makes the files that browsers load, each also compressed (`.gz`, `.br`). Scripts and style sheets of pages get names
 * that change with their content. Resolves with the folders of the packages in them.
 */
export async function bundle(directory: string, from = sources): Promise<string[]> {
  const { metafile } = await build({
    ...inBrowsers,
    absWorkingDir: from,
    outdir: resolve(directory),
    entryPoints: {
      icon: 'page/icon.svg',
      ...Object.fromEntries(Object.entries(pages).map(([name, { entry }]) => [name, entry])),
    },
    entryNames: '[name]-[hash]',
    chunkNames: 'part-[hash]',
    splitting: true,
    metafile: true,
    format: 'esm',
    loader: { '.svg': 'copy' },
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none', // `licensesOf` collects the licences in a file
    plugins: [commandsWithoutCode],
  })
  // The script for pages of others, which name it: its name stays, and it shares no files with the pages of the hub.
  await build({
    ...inBrowsers,
    absWorkingDir: from,
    outdir: resolve(directory),
    entryPoints: { 'embed-v1': 'embed/main.ts' },
    format: 'iife', // for scripts of each type
    plugins: [stylesAsTexts],
  })
  await mkdir(directory, { recursive: true })
  const outputs = outputsOf(metafile)
  for (const [name, page] of Object.entries<WebPage>(pages)) {
    await writeFile(join(directory, `${name}.html`), documentOf(page, outputs))
  }
  await writeFile(join(directory, 'licenses.txt'), await licensesOf(metafile, from))
  for (const name of await readdir(directory)) await compress(join(directory, name))
  return [...(await packagesOf(metafile, from)).keys()]
}

/** Puts the value of the table of commands into scripts, and none of the code behind it. */
const commandsWithoutCode: Plugin = {
  name: 'commands without code',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]console[/\\]commands\.ts$/ }, async () => {
      const { commands } = await import('./console/commands.ts')
      return { contents: JSON.stringify({ commands }), loader: 'json' }
    })
  },
}

/** Puts style sheets into the script. */
const stylesAsTexts: Plugin = {
  name: 'styles as texts',
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path), { loader: 'css', minify: true })
      return { contents: code.trim(), loader: 'text' }
    })
  },
}

/** A file that esbuild has made. `needs`: the files that it imports. */
interface Output {
  entry: string | undefined
  name: string
  style: string | undefined
  needs: readonly string[]
}

function outputsOf({ outputs }: Metafile): Output[] {
  return Object.entries(outputs).map(([path, { entryPoint, cssBundle, imports }]) => ({
    entry: entryPoint,
    name: basename(path),
    style: cssBundle && basename(cssBundle),
    needs: imports.filter(({ kind }) => kind === 'import-statement').map((one) => basename(one.path)),
  }))
}

function documentOf({ title, entry }: WebPage, outputs: readonly Output[]): string {
  const script = outputs.find((output) => output.entry === entry)
  const icon = outputs.find((output) => output.entry === 'page/icon.svg')
  if (!script || !icon) throw new Error(`nothing was made of ${entry}`)
  const lines = [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<title>${title}</title>`,
    `<link rel="icon" type="image/svg+xml" href="/web/${icon.name}">`,
    ...(script.style ? [`<link rel="stylesheet" href="/web/${script.style}">`] : []),
    ...script.needs.map((name) => `<link rel="modulepreload" href="/web/${name}">`),
    `<script type="module" src="/web/${script.name}"></script>`,
    '</head>',
    '<body>',
    // CSS shows this text if the script is late. The script replaces the text.
    '<div id="page"><p class="arriving">The script of this page has not arrived yet. If this stays, load the page again.</p></div>',
    '<noscript>This page needs JavaScript.</noscript>',
    '</body>',
    '</html>',
  ]
  return `${lines.join('\n')}\n`
}

async function compress(path: string): Promise<void> {
  const content = await readFile(path)
  const inBrotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }
  await Promise.all([
    writeFile(`${path}.gz`, await promisify(gzip)(content, { level: 9 })),
    writeFile(`${path}.br`, await promisify(brotliCompress)(content, inBrotli)),
  ])
}
