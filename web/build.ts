import { bundle } from './bundle.ts'

/* `npm run build`: makes the files of the pages for a package. */

const [, , directory = 'dist/web/public'] = process.argv
await bundle(directory)
