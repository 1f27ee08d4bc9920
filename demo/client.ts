import { readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { connectAsync, type MqttClient } from 'mqtt'
import type { Login } from './node.ts'

/** Where the clients connect to. */
export interface Broker {
  mqttPort: number
  caPath: string
}

/** Connects over TLS. The client trusts only the CA at `caPath`. */
export async function connect(
  { mqttPort, caPath }: Broker,
  login: Login,
  clientId: string,
  lost: (reason: string) => void,
): Promise<MqttClient> {
  const client = await connectAsync({
    protocol: 'mqtts',
    host: 'localhost',
    port: mqttPort,
    ca: readFileSync(caPath),
    ...login,
    clientId,
    protocolVersion: 4,
    // Does not reconnect: a lost connection must be reported.
    reconnectPeriod: 0,
  })
  // Nagle's algorithm would hold back the second of two quick events for up to 40 ms.
  if (client.stream instanceof Socket) client.stream.setNoDelay(true)
  client.on('error', (error) => lost(`${clientId}: ${error.message}`))
  client.on('close', () => {
    if (!client.disconnecting) lost(`${clientId}: the connection was closed`)
  })
  return client
}
