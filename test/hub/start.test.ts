import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { temporaryDirectory } from '../start-hub.ts'

t.test('SIGTERM to npm start stops the node behind it', async (t) => {
  const home = await temporaryDirectory(t)
  const npm = spawn('npm', ['start', '--silent'], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    env: { ...process.env, HUB_DATA_DIR: join(home, 'data'), HUB_MQTT_PORT: '0', HUB_HTTPS_PORT: '0' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const messages: unknown[] = []
  for await (const line of createInterface({ input: npm.stdout })) {
    const { msg } = JSON.parse(line)
    messages.push(msg)
    if (msg === 'hub ready') npm.kill('SIGTERM')
  }
  // The output has ended, and with it the node, which holds the other end.
  if (npm.exitCode === null && npm.signalCode === null) await once(npm, 'exit')
  t.ok(messages.includes('stopping'))
})
