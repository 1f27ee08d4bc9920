import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startProgram } from '../../documentation.ts'
import { institutions, playing, station } from '../../events.ts'
import { projectFile } from '../../root.ts'
import { type Issued, temporaryDirectory } from '../../start-hub.ts'

const [own = ''] = institutions

/** Every Python here with a paho of its own: Debian's 1.6, and 2 where `PAHO2_PYTHON` or the PATH has it. */
export const pythons = [
  ...new Map(
    [process.env.PAHO2_PYTHON, '/usr/bin/python3', 'python3'].flatMap((python) => {
      const version = python === undefined ? undefined : pahoOf(python)
      return python === undefined || version === undefined ? [] : [[version, { python, version }] as const]
    }),
  ).values(),
]

/** In development mode asyncio tells of each step that takes 0.1 s, which any may on a busy machine. */
const quietAsyncio = `import logging
logging.getLogger("asyncio").addFilter(lambda record: not record.getMessage().startswith("Executing "))
`

/**
 * Starts a program that has the library beside it, and ends it with the test. Tracebacks and warnings are lines, too.
 * `settings`: what the program finds in its environment.
 */
export async function startPython(
  t: Test,
  python: string,
  text: string,
  settings: Record<string, string>,
  cwd?: string,
) {
  const folder = cwd ?? (await temporaryDirectory(t))
  writeFileSync(join(folder, 'program.py'), quietAsyncio + text)
  const env = { PATH: process.env.PATH ?? '', LANG: 'C.UTF-8', PYTHONPATH: projectFile('client/python') }
  const command = [python, '-u', '-W', 'error', '-X', 'dev', 'program.py']
  return startProgram(t, command, {
    cwd: folder,
    env: { ...env, PYTHONDONTWRITEBYTECODE: '1', ...settings },
  })
}

/** The beginning of a program: what it imports, and a publisher. It finds the rest in `settingsOf`. */
export const publishing = `
import json, os, threading, time
import now_playing_hub as hub
env = os.environ
event = json.loads(env["EVENT"])
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def connect(**options):
    return hub.connect_publisher(url=env["URL"], username=env["HUB_USER"], password=env["HUB_PASSWORD"], ca=env["CA"],
        institution=env["INSTITUTION"], on_problem=lambda problem: say("problem", problem.code), **options)
`

export type Settings = Record<string, string>

/** What a program that begins with `publishing` finds in its environment. */
export function settingsOf(
  { mqttPort, caPath }: { mqttPort: number; caPath: string },
  { username, password }: Issued,
  event: Record<string, unknown> = playing(station()),
): Settings {
  return {
    URL: `mqtts://localhost:${mqttPort}`,
    CA: caPath,
    INSTITUTION: own,
    HUB_USER: username,
    HUB_PASSWORD: password,
    EVENT: JSON.stringify(event),
  }
}

function pahoOf(python: string): string | undefined {
  try {
    const asked = 'import paho.mqtt; print(paho.mqtt.__version__)'
    return execFileSync(python, ['-c', asked], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return undefined
  }
}
