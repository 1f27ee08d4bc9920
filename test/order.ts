/**
 * The tests that take longest: in test/soak/ 50 to 150 s on two cores, elsewhere 15 to 40 s. They begin first, so that
 * none of them runs alone at the end. In the list, tests that compute alternate with tests that mostly wait.
 */
export const longest = [
  'soak/hub/crash-load',
  'soak/fence/fence',
  'soak/hub/crash',
  'soak/bench/bench',
  'soak/web/console',
  'soak/nodes/store-faults',
  'soak/hub/crash-on-redis',
  'soak/nodes/stale-sessions',
  'soak/hub/crash-sessions',
  'soak/nodes/gaps',
  'soak/hub/crowd',
  'soak/nodes/lost-sessions',
  'soak/attacks/tiny-records',
  'soak/web/console-changes',
  'soak/hub/start',
  'soak/delivery/webhook/push',
  'soak/cli/hubctl',
  'soak/nodes/beginnings',
  'soak/web/on-air',
  'web/log-in',
  'web/accessible',
  'bridge-https/operate',
  'broker/session/returning',
  'event/topic',
  'store/redis/unread-log',
]

/** Returns the paths of compiled tests: the longest tests first, then the others in their given order. */
export function longestFirst(paths: readonly string[]): string[] {
  const early = longest.flatMap((name) => paths.filter((path) => path.endsWith(`/test/${name}.test.js`)))
  return [...new Set([...early, ...paths])]
}
