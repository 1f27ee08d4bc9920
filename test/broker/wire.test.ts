import t from 'tap'
import { preparePublish, type Qos } from '../../broker/wire.ts'

t.test('the length of a packet is known before there is one', async (t) => {
  // Around the places where Remaining Length takes one byte more, MQTT 3.1.1 §2.2.3.
  for (const topic of ['a', 'radio/é/#', 'a'.repeat(100)]) {
    for (const bytes of [
      0, 20, 100, 118, 120, 122, 124, 126, 128, 16_279, 16_281, 16_377, 16_379, 16_381, 20_000,
    ]) {
      const publish = preparePublish(topic, Buffer.alloc(bytes))
      for (const qos of [0, 1, 2] satisfies Qos[]) {
        t.equal(
          publish.length(qos),
          publish.packet(qos, {}, 7).length,
          `QoS ${qos}, payload of ${bytes} bytes`,
        )
      }
    }
  }
})
