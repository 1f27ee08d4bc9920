/**
 * NODE_OPTIONS of a process whose clock is ahead of the machine's by the milliseconds that a file has at the time.
 * Timers do not notice.
 */
export function clockOf(path: string): string {
  const code = `import { readFileSync } from 'node:fs'
    const machine = Date
    const now = () => machine.now() + Number(readFileSync(${JSON.stringify(path)}, 'utf8'))
    globalThis.Date = new Proxy(machine, {
      construct: (target, given) => Reflect.construct(target, given.length > 0 ? given : [now()]),
      get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
    })`
  return `--import=data:text/javascript,${encodeURIComponent(code)}`
}
