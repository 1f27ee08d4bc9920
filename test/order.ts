/**
 * The tests that take longest: 60 to 150 s on two cores. They begin first, so that none of them runs alone at the end.
 * The list alternates between tests that compute and tests that mostly wait.
 */
export const longest = [
  'soak/hub/crash',
  'soak/nodes/store-faults',
  'soak/nodes/stale-sessions',
  'soak/hub/crash-load',
  'soak/nodes/lost-sessions',
  'soak/delivery/webhook/push',
  'soak/fence/fence',
  'soak/hub/crowd',
  'soak/bench/bench',
  'soak/hub/sessions',
  'soak/bridge-https/ownership',
]

/** Returns the paths of compiled tests: the longest tests first, then the others in their given order. */
export function longestFirst(paths: readonly string[]): string[] {
  const early = longest.flatMap((name) => paths.filter((path) => path.endsWith(`/test/${name}.test.js`)))
  return [...new Set([...early, ...paths])]
}
