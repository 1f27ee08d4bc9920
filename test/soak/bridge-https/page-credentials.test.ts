import { connectAsync } from 'mqtt'
import t from 'tap'
import { call } from '../../../cli/connection.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { institutions } from '../../events.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { temporaryDirectory } from '../../start-hub.ts'

const [own = ''] = institutions

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  t.test(`credentials of a user that was removed are void, also when ${signal} follows`, async (t) => {
    const home = await temporaryDirectory(t)
    const hub = await spawnHub(t, home, { HUB_LOGIN_FAILURES: '0' })
    const ask = <Result>(command: string, args: Record<string, unknown> = {}) =>
      resultOf<Result>(hub.adminSocket, command, args)
    const api = await openApi(t, hub)
    const { email, token } = await addUser({ ask }, api, own, { permissions: ['subscribe'] })
    const made = await Promise.all(
      Array.from({ length: 20 }, () => api.call('POST', '/auth/mqtt', { token })),
    )
    await ask('users.remove', { email })
    await hub.stop(signal)
    const again = await spawnHub(t, home, { HUB_LOGIN_FAILURES: '0' })
    const url = `mqtts://localhost:${again.mqttPort}`
    const settings = { protocolVersion: 4 as const, reconnectPeriod: 0, rejectUnauthorized: false }
    for (const { json } of made) {
      const login = { username: String(json.username), password: String(json.password), clientId: 'page-1' }
      await t.rejects(connectAsync(url, { ...settings, ...login }, false), { code: 4 })
    }
  })
}

async function resultOf<Result>(socket: string, command: string, args: Record<string, unknown>) {
  const answer = await call(socket, command, args, 'tester')
  if ('error' in answer) throw new Error(answer.error.message)
  return answer.result as Result
}
