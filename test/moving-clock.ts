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

/**
 * As `clockOf`, for a process that looks at something each 10 or 30 seconds: it looks 20 times a second, and its clock goes
 * on to where the file has it by 10 seconds at a time.
 */
export function passingClockOf(path: string): string {
  const code = `import { readFileSync } from 'node:fs'
    const machine = Date
    let ahead = 0
    const now = () => machine.now() + ahead
    globalThis.Date = new Proxy(machine, {
      construct: (target, given) => Reflect.construct(target, given.length > 0 ? given : [now()]),
      get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
    })
    const { setInterval } = globalThis
    globalThis.setInterval = (work, ms, ...given) => {
      if (ms !== 10_000 && ms !== 30_000) return setInterval(work, ms, ...given)
      return setInterval(() => {
        if (ms === 30_000) ahead = Math.min(ahead + 10_000, Number(readFileSync(${JSON.stringify(path)}, 'utf8')))
        work(...given)
      }, 50)
    }`
  return `--import=data:text/javascript,${encodeURIComponent(code)}`
}
