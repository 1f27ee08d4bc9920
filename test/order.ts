import { words } from './words.ts'
/**
 * The longest tests begin first, so that none of them runs alone at the end. On two cores: 25 to 150 s in test/soak/,
 * elsewhere 15 to 40 s. Tests that compute alternate with tests that mostly wait.
 */
export const longest = words(`
  soak/store/redis/split soak/hub/crash-load soak/hub/crowd soak/workers/hung soak/web/on-air soak/bench/bench
  soak/deploy/release soak/attacks/bad-receivers soak/fence/fence soak/fence/fence-workers soak/web/console
  soak/deploy/proxies soak/client/publisher soak/web/connection soak/deploy/package soak/hub/crash-sessions
  soak/web/console-changes soak/client/browser soak/cli/hubctl soak/hub/start soak/nodes/store-faults
  soak/bridge-https/websocket soak/cli/remote soak/nodes/stale-sessions soak/client/python
  soak/delivery/webhook/push soak/delivery/webhook/hour-away soak/web/console-institution
  soak/attacks/tiny-records soak/attacks/expensive-events soak/workers/hub soak/web/log-in soak/bench/hazards
  soak/web/accessible soak/hub/documented-clients soak/nodes/beginnings soak/demo soak/nodes/gaps
  soak/admin/killed-imports soak/admin/backup/refused one-row soak/delivery/plugins/driver-process
  soak/nodes/round-trips soak/bridge-https/fuzz soak/journal/newer-than soak/delivery/plugins/driver-faults
  soak/nodes/pushes soak/bridge-https/operate soak/broker/session/returning soak/broker/packet-trace
  soak/watch/silence soak/store/redis/unread-log soak/client/python-hostile soak/delivery/webhook/worth
  soak/hub/wills soak/store/redis/faults soak/delivery/webhook/many-webhooks soak/watch/loops
  soak/nodes/rolling-restart soak/workers/limits soak/attacks/pipelined-gets soak/hub/sessions
  soak/nodes/chaos soak/nodes/node-faults soak/web/embed client/outages delivery/replays broker/races
`)

/** The paths of compiled tests: the longest tests first, then the others as given. */
export function longestFirst(paths: readonly string[]): string[] {
  const early = longest.flatMap((name) => paths.filter((path) => path.endsWith(`/test/${name}.test.js`)))
  return [...new Set([...early, ...paths])]
}
