import { bundle } from './bundle.ts'

/* The last step of `npm run build`: makes the files of the pages. */

const [, , directory = 'dist/web/public'] = process.argv
await bundle(directory)
