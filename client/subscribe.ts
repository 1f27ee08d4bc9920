import type { MqttClient } from 'mqtt'

/**
 * Subscribes, and hands on what the hub has granted of each filter: a QoS, or 0x80. A SUBACK that does not come in the
 * time of a CONNACK, or that cannot be right, is an error of the client: mqtt.js would wait for ever.
 */
export function subscribe(
  client: MqttClient,
  filters: readonly string[],
  qos: 0 | 1,
  granted: (codes: readonly unknown[]) => void,
): void {
  const fail = (reason: string) => client.emit('error', new Error(reason))
  const late = setTimeout(fail, client.options.connectTimeout, 'no answer to SUBSCRIBE in time')
  client.subscribe([...filters], { qos }, (error, _granted, answer) => {
    clearTimeout(late)
    if (answer?.granted.length === filters.length) granted(answer.granted)
    else fail(error?.message ?? 'no answer to SUBSCRIBE')
  })
}

/** Whether a code of a SUBACK denies its filter. MQTT 3.1.1 knows 0x80 alone, and reserves the others (§3.9.3). */
export function isDenial(code: unknown): boolean {
  return Number(code) >= 0x80
}
