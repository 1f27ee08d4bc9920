import { relative } from 'node:path'
import type { Livestream } from './validator/feed.ts'

/**
 * The next commands to paste, for whoever starts a node by hand: two credentials, a subscriber, an event.
 * Made from this node's real ports, paths and feed, so that they work as printed.
 */
export function welcomeText(node: {
  mqttPort: number
  adminSocket: string
  defaultSocket: string
  caPath: string
  livestream: Livestream | undefined
}): string {
  const { mqttPort, livestream } = node
  const socket = node.adminSocket === node.defaultSocket ? '' : ` --socket ${node.adminSocket}`
  const hubctl = `npm run -s hubctl --${socket}`
  const broker = `-h localhost -p ${mqttPort} --cafile ${relative(process.cwd(), node.caPath)}`
  const lines = [
    '',
    `The hub listens for MQTT over TLS on port ${mqttPort}. In other terminals, in this folder:`,
    '',
    '# a subscriber: sees every event',
    `SUB=$(${hubctl} credentials add --role subscriber --label player --allow 'radio/#' --json)`,
    `mosquitto_sub ${broker} -q 1 -v -t 'radio/#' -u "$(${field('SUB', 'username')})" -P "$(${field('SUB', 'password')})"`,
  ]
  if (livestream) lines.push(...publisherLines(livestream, hubctl, broker))
  lines.push('', '# what the node does', `${hubctl} status`, '')
  return lines.join('\n')
}

function publisherLines(
  { id, title, publisher, institution, type, externalId }: Livestream,
  hubctl: string,
  broker: string,
): string[] {
  const login = `-u "$(${field('PUB', 'username')})" -P "$(${field('PUB', 'password')})"`
  const service = { type, externalId, id, publisherId: publisher.id, institutionId: institution.id }
  const event = {
    event: 'de.org.hub.v1.radio.track.playing',
    type: 'music',
    start: 'START',
    length: 215,
    title: 'Morgenlicht',
    artist: 'Mira Hollund',
    playlistItemId: 'item-1',
    services: [service],
  }
  const payload = JSON.stringify(event).replace('START', `'"$(date +%Y-%m-%dT%H:%M:%S%:z)"'`)
  return [
    '',
    `# a publisher of ${institution.title}: what the hub says about its events`,
    `PUB=$(${hubctl} credentials add --role publisher --label studio --institution ${institution.id} --json)`,
    `mosquitto_sub ${broker} -q 1 -v -t 'feedback/${institution.id}' ${login} &`,
    '',
    `# now playing on ${title}`,
    `mosquitto_pub ${broker} -q 1 -t 'inbox/${institution.id}' ${login} -m '${payload}'`,
  ]
}

/** Reads one field of the JSON in a shell variable, with nothing but Node. */
function field(variable: string, name: string): string {
  return `node -p 'JSON.parse(process.argv[1]).${name}' "$${variable}"`
}
