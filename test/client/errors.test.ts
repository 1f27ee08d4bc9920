import { readFileSync } from 'node:fs'
import t from 'tap'
import { ClientError, errorCodes } from '../../client/errors.ts'
import { projectFile } from '../root.ts'

t.test('an error has its code, and the sentence of the code unless there is more to say', async (t) => {
  t.match(new ClientError('superseded'), {
    name: 'ClientError',
    code: 'superseded',
    message: errorCodes.superseded,
  })
  t.match(new ClientError('option.invalid', 'url must be a text'), { message: 'url must be a text' })
})

t.test('the page of the package names what it exports', async (t) => {
  const readme = readFileSync(projectFile('client/README.md'), 'utf8')
  const exported = Object.keys(await import('../../client/node.ts'))
  for (const [, names = ''] of readme.matchAll(/^import \{ (.+?) \} from 'now-playing-hub-client'$/gm)) {
    for (const name of names.split(', ')) t.ok(exported.includes(name), `${name} is exported`)
  }
})
