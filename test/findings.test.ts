import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { projectFile } from './root.ts'

const folder = projectFile('findings')
const words = ['Software', 'Behaviour', 'Seen', 'Hub', 'Source']

t.test('a finding has the form of findings/README.md', async (t) => {
  const names = readdirSync(folder).filter((name) => name !== 'README.md')
  t.strictSame(
    names.flatMap((name) => faultsOf(name).map((fault) => `${name}: ${fault}`)),
    [],
  )
})

t.test('the npm package has no findings', async (t) => {
  const { files } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'))
  t.notOk(files.some((name: string) => name.startsWith('findings')))
})

function faultsOf(name: string): string[] {
  if (!/^[a-z0-9][a-z0-9.-]*\.sh$/.test(name)) return ['is not called NAME.sh']
  const path = join(folder, name)
  const text = readFileSync(path, 'utf8')
  const [head = ''] = text.split(/^[^#\n]/m, 1)
  const rules: [holds: boolean, fault: string][] = [
    [(statSync(path).mode & 0o111) === 0o111, 'is not executable'],
    [text.startsWith('#!/usr/bin/env bash\n'), 'does not begin with #!/usr/bin/env bash'],
    [/^set -euo pipefail$/m.test(text), 'has no set -euo pipefail'],
    [
      /mktemp -d/.test(text) && /^trap .+ EXIT$/m.test(text),
      'does not remove a folder of its own from mktemp -d',
    ],
    [/as described/.test(text), 'does not end with "as described"'],
    ...words.map((word): [boolean, string] => [
      new RegExp(`^# ${word}: \\S`, 'm').test(head),
      `says no "${word}:"`,
    ]),
  ]
  return rules.flatMap(([holds, fault]) => (holds ? [] : [fault]))
}
