import { rm } from 'node:fs/promises'
import { bundle } from './bundle.ts'

/* `npm run build`: makes `dist/`. */

await rm('dist', { recursive: true, force: true })
await bundle('dist')
