import { readFileSync } from 'node:fs'
import t from 'tap'
import { projectFile } from './root.ts'

const manifest = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'))
const lock = JSON.parse(readFileSync(projectFile('package-lock.json'), 'utf8'))
const packages: [path: string, entry: Locked][] = Object.entries<Locked>(lock.packages)

interface Locked {
  version: string
  resolved?: string
  /** A package of this repository. */
  link?: boolean
  engines?: { node?: string }
}

t.test('every package that is installed takes the oldest Node.js the hub does', async (t) => {
  t.equal(manifest.engines.node, '>=20.19')
  const refusing = packages.filter(([, { engines }]) => !takes(engines?.node ?? '*', [20, 19, 0]))
  t.strictSame(
    refusing.map(([path, { version, engines }]) => `${path} ${version} wants ${engines?.node}`),
    [],
  )
})

t.test('versions are exact, and come from whichever registry is configured', async (t) => {
  const asked = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.overrides }
  for (const [name, version] of Object.entries(asked)) t.match(version, /^\d+\.\d+\.\d+$/, name)
  t.strictSame(
    packages.flatMap(([path, { resolved, link }]) => (resolved === undefined || link ? [] : [path])),
    [],
  )
})

t.test('the reader of engines reads them', async (t) => {
  const version = [20, 19, 0]
  for (const range of [
    '*',
    '>=20.19',
    '>= 12',
    '^20.17.0 || >=22.9.0',
    '18 || 20 || >=22',
    '>=6 <21',
    '20.x',
  ])
    t.equal(takes(range, version), true, range)
  for (const range of ['>=22', '^18.0.0 || >=22', '>=20.19.1', '>=6 <20', '^20.20.0', '22'])
    t.equal(takes(range, version), false, range)
})

/** Whether a range of `engines` includes this version. Knows only the forms that the installed packages use. */
function takes(range: string, version: readonly number[]): boolean {
  return range.split('||').some((alternative) => {
    const bounds = alternative
      .replace(/(>=|<=|[<>^~=])\s+/g, '$1')
      .trim()
      .split(/\s+/)
    return bounds.every((bound) => holds(bound, version))
  })
}

function holds(bound: string, version: readonly number[]): boolean {
  const [, operator = '', text = ''] = /^(>=|<=|[<>^~=]|)v?(.*)$/.exec(bound) ?? []
  const numbers = text
    .split('.')
    .filter((part) => /^\d/.test(part))
    .map(Number.parseFloat)
  const order = compare(version, numbers)
  if (operator === '>=') return order >= 0
  if (operator === '>') return order > 0
  if (operator === '<=') return order <= 0
  if (operator === '<') return order < 0
  const [major] = numbers
  if (operator === '^') return order >= 0 && version[0] === major
  return numbers.every((number, index) => version[index] === number)
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (let index = 0; index < 3; index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
