/**
 * The tests that take longest on two cores, 60 to 150 s: they begin first, so that none is left to run alone. Those
 * that compute stand beside those that mostly wait.
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

/** The paths of compiled tests with the longest at the front, the others as they were. */
export function longestFirst(paths: readonly string[]): string[] {
  const early = longest.flatMap((name) => paths.filter((path) => path.endsWith(`/test/${name}.test.js`)))
  return [...new Set([...early, ...paths])]
}
