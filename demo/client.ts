import type { ClientError } from '../client/node.ts'
import type { Login } from './node.ts'

/** Where the clients connect to. */
export interface Broker {
  mqttPort: number
  caPath: string
}

/**
 * The options that broadcasters and listeners have in common. `lost` is told of every problem: the client library would
 * go on by itself, but here each one must be seen.
 */
export function optionsFor({ mqttPort, caPath }: Broker, login: Login, lost: (reason: string) => void) {
  return {
    url: `mqtts://localhost:${mqttPort}`,
    ca: caPath,
    username: login.username,
    password: login.password,
    onProblem: ({ message }: ClientError) => lost(message),
  }
}
