import { setImmediate as nextTurn } from 'node:timers/promises'

/** How long such work goes on in one turn of the event loop, milliseconds. Events wait for it (design.md §11). */
const turnMs = 4
/** Entries of a list that become JSON at once. */
const atOnce = 50
/** Lists that lie deeper in a value become JSON at once. */
const maxDepth = 2

/** What `make` makes of each, in several turns of the event loop if they take long: thousands may be asked for. */
export async function inTurns<One, Made>(
  all: Iterable<One>,
  make: (one: One) => Made | Promise<Made>,
): Promise<Made[]> {
  const made: Made[] = []
  let began = performance.now()
  for (const one of all) {
    made.push(await make(one))
    if (performance.now() - began < turnMs) continue
    await nextTurn()
    began = performance.now()
  }
  return made
}

/** The JSON of plain data, as `JSON.stringify` writes it. Long lists are written in several turns of the event loop. */
export async function jsonInTurns(value: unknown): Promise<string> {
  const texts: string[] = []
  await write(value, texts)
  return texts.join('')
}

async function write(value: unknown, texts: string[], depth = 0): Promise<void> {
  if (Array.isArray(value) && value.length > atOnce) {
    let before = '['
    await inTurns(partsOf(value), (part) => {
      texts.push(before, JSON.stringify(part).slice(1, -1))
      before = ','
    })
    texts.push(']')
  } else if (depth < maxDepth && isPlain(value)) {
    let before = '{'
    for (const [name, field] of Object.entries(value)) {
      if (field === undefined) continue
      texts.push(before, JSON.stringify(name), ':')
      before = ','
      await write(field, texts, depth + 1)
    }
    texts.push(before === '{' ? '{}' : '}')
  } else texts.push(JSON.stringify(value))
}

function* partsOf(list: readonly unknown[]): Generator<readonly unknown[]> {
  for (let start = 0; start < list.length; start += atOnce) yield list.slice(start, start + atOnce)
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
