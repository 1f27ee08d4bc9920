import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { describeMqtt } from '../../../bridge-https/description/asyncapi.ts'
import { eventKinds } from '../../../event/kind.ts'
import { inboxTopic, radioTopic } from '../../../event/topic.ts'
import { exampleOf, station } from '../../events.ts'

const description = JSON.parse(
  JSON.stringify(describeMqtt({ version: '1', publicUrl: 'https://hub.example', mqttPort: 8883 })),
)
const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema({ $id: 'asyncapi', ...description })

// A client whose classes are made of the description must go on when the hub has a new field.
t.test('what arrives is described with an id, and open for fields that are new', async (t) => {
  for (const kind of eventKinds) {
    const fits = checkOf(radioTopic('{livestreamId}', kind))
    const arrived = { ...exampleOf(kind, station()), id: '1' }
    t.ok(fits(arrived), kind.name)
    t.ok(fits({ ...arrived, novel: true }), `${kind.name}: a new field`)
    t.notOk(fits({ ...arrived, id: undefined }), `${kind.name}: without id`)
    const references = [{ type: 'Show', externalId: 'crid://a.example/b', novel: true }]
    if (kind.class === 'track') t.ok(fits({ ...arrived, references }), `${kind.name}: a new field further in`)
  }
})

t.test('what a publisher sends is described with the fields that the hub takes', async (t) => {
  const fits = checkOf(inboxTopic('{institutionId}'))
  const [playing] = eventKinds
  if (!playing) throw new Error('no kind')
  const sent = exampleOf(playing, station())
  t.ok(fits(sent))
  t.notOk(fits({ ...sent, novel: true }))
})

/** Whether a value fits one of the messages of the channel with this address. */
function checkOf(address: string): (value: object) => boolean {
  const channels: { address: string; messages: Record<string, { $ref: string }> }[] = Object.values(
    description.channels,
  )
  const messages = channels.find((channel) => channel.address === address)?.messages
  const anyOf = Object.values(messages ?? {}).map(({ $ref }) => ({ $ref: `asyncapi${$ref}/payload` }))
  const validate = ajv.compile({ anyOf })
  return (value) => validate(JSON.parse(JSON.stringify(value)))
}
