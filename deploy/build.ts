import { rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { bundle } from './bundle.ts'
import { sbomOf } from './sbom.ts'

/* `npm run build`: makes `dist/`. */

await rm('dist', { recursive: true, force: true })
const packages = await bundle('dist')
await writeFile('dist/sbom.cdx.json', await sbomOf(packages, fileURLToPath(new URL('../', import.meta.url))))
