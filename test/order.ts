/**
 * The longest tests begin first, so that none of them runs alone at the end. On two cores: 50 to 150 s in test/soak/,
 * elsewhere 15 to 40 s. Tests that compute alternate with tests that mostly wait.
 */
export const longest = [
  'soak/store/redis/split',
  'soak/hub/crowd',
  'soak/client/python',
  'soak/fence/fence',
  'soak/bench/bench',
  'soak/hub/crash',
  'soak/cli/hubctl',
  'soak/nodes/store-faults',
  'soak/hub/crash-load',
  'soak/web/console',
  'soak/client/browser',
  'soak/hub/start',
  'soak/hub/crash-on-redis',
  'soak/nodes/stale-sessions',
  'soak/hub/crash-sessions',
  'soak/delivery/webhook/push',
  'soak/attacks/tiny-records',
  'soak/nodes/beginnings',
  'soak/client/publisher',
  'soak/deploy/proxies',
  'soak/web/on-air',
  'soak/nodes/gaps',
  'soak/web/console-changes',
  'soak/web/log-in',
  'soak/bridge-https/operate',
  'soak/web/accessible',
  'one-row',
  'soak/broker/session/returning',
  'soak/store/redis/unread-log',
  'delivery/replays',
]

/** The paths of compiled tests: the longest tests first, then the others as given. */
export function longestFirst(paths: readonly string[]): string[] {
  const early = longest.flatMap((name) => paths.filter((path) => path.endsWith(`/test/${name}.test.js`)))
  return [...new Set([...early, ...paths])]
}
