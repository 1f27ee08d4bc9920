import { bundle } from './bundle.ts'

/* The last step of `npm run build`: makes the files of the pages, which the npm package contains. */

const [, , directory = 'dist/web/public'] = process.argv
await bundle(directory)
