import { cpus } from 'node:os'
import { slowReaders } from './slow-readers.ts'

/** One command per scenario: `npm run bench -- slow-readers`; without a name all of them. */
const scenarios: Record<string, () => Promise<Record<string, number>>> = {
  'slow-readers': slowReaders,
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !Object.hasOwn(scenarios, name))
if (unknown.length > 0) {
  process.stderr.write(`unknown: ${unknown.join(', ')}; there are ${Object.keys(scenarios).join(', ')}\n`)
  process.exit(2)
}
process.stdout.write(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}\n`)
for (const [name, run] of Object.entries(scenarios)) {
  if (asked.length > 0 && !asked.includes(name)) continue
  process.stdout.write(`\n${name}\n`)
  for (const [figure, value] of Object.entries(await run())) {
    process.stdout.write(`  ${figure.padEnd(32)} ${value}\n`)
  }
}
